internal import Core
internal import Cryptography

/// A hash of digest authentication, the weakest first (RFC 8760 §2.1).
public enum DigestAlgorithm: String, CaseIterable, Comparable, Sendable {
    /// Used with servers that offer no other.
    case md5 = "MD5"
    /// The one that all must have.
    case sha256 = "SHA-256"
    /// SHA-512/256.
    case sha512With256 = "SHA-512-256"

    /// The hash in lower-case hexadecimal digits; empty if the machine's policy forbids the algorithm.
    func hash(_ bytes: [UInt8]) -> String {
        switch self {
        case .md5: Hexadecimal.text(Digest.md5(bytes))
        case .sha256: Hexadecimal.text(Digest.sha256(bytes))
        case .sha512With256: Hexadecimal.text(Digest.sha512With256(bytes))
        }
    }

    func hash(_ text: String) -> String { hash(Array(text.utf8)) }

    /// Whether the machine's policy allows it.
    public var isAllowed: Bool { !hash("").isEmpty }

    /// Orders by strength.
    public static func < (left: Self, right: Self) -> Bool { left.strength < right.strength }

    private var strength: Int {
        switch self {
        case .md5: 0
        case .sha256: 1
        case .sha512With256: 2
        }
    }
}

/// The digest of a request and a password (RFC 7616 §3.4).
struct DigestComputation {
    /// Quality of protection.
    enum Quality: String, Sendable {
        case auth
        case authInt = "auth-int"
    }

    var algorithm: DigestAlgorithm
    /// `-sess`: the first nonces are part of the key.
    var isSession: Bool
    var realm: String
    var nonce: String
    var quality: Quality?
    var clientNonce: String
    var count: UInt32
    var method: String
    var uri: String
    var body: [UInt8]

    /// `nc`: eight digits.
    var countText: String { Hexadecimal.text(of: count) }

    static func key(_ algorithm: DigestAlgorithm, username: String, realm: String, password: String) -> String {
        algorithm.hash("\(username):\(realm):\(password)")
    }

    /// - Parameter key: `H(username:realm:password)`, which may be stored instead of the password.
    func response(key: String) -> String {
        let key = isSession ? algorithm.hash("\(key):\(nonce):\(clientNonce)") : key
        var subject = "\(method):\(uri)"
        if quality == .authInt { subject += ":" + algorithm.hash(body) }
        let hashed = algorithm.hash(subject)
        guard let quality else { return algorithm.hash("\(key):\(nonce):\(hashed)") }
        return algorithm.hash("\(key):\(nonce):\(countText):\(clientNonce):\(quality.rawValue):\(hashed)")
    }
}
