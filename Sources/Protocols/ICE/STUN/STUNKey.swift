internal import Cryptography

/// The secret that an integrity attribute is made with.
public struct STUNKey: Hashable, Sendable {
    /// How a long-term password is made into a key (RFC 8489 §18.5).
    public enum Algorithm: UInt16, Sendable {
        /// MD5, which every server knows.
        case md5 = 1
        /// SHA-256, where the server offers it.
        case sha256 = 2
    }

    let bytes: [UInt8]

    /// The key of a short-term credential: the password itself (RFC 8489 §9.1.1). ICE's passwords are ASCII.
    public init(shortTerm password: String) { bytes = Array(password.utf8) }

    /// The key of a long-term credential (RFC 8489 §9.2.2).
    ///
    /// The three are used unchanged. Preparation (RFC 8265) does not change ASCII, which servers use for time-limited
    /// credentials.
    public init(longTerm username: String, realm: String, password: String, algorithm: Algorithm) {
        let joined = Array("\(username):\(realm):\(password)".utf8)
        bytes =
            switch algorithm {
            case .md5: Digest.md5(joined)
            case .sha256: Digest.sha256(joined)
            }
    }

    /// Makes the crypto library ready. Its first digest takes about a millisecond, which is better spent at start-up
    /// than on the first check of a call.
    public static func prepareLibrary() {
        _ = Digest.hmacSHA1([0], [0])
    }
}
