internal import Core
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

/// Which of the two integrity attributes protects a message.
public enum STUNIntegrity: Sendable {
    /// MESSAGE-INTEGRITY, HMAC-SHA1.
    case sha1
    /// MESSAGE-INTEGRITY-SHA256.
    case sha256
}

extension STUNMessage {
    /// The result of checking a message's integrity.
    public enum Verdict: Equatable, Sendable {
        /// It has none.
        case absent
        /// Made with the key.
        case valid
        /// Made with another key, or changed in transit.
        case invalid
    }

    /// Checks that the message's author has `key`. The stronger attribute counts if there are both. Compares in
    /// constant time.
    public func integrity(_ key: STUNKey) -> Verdict {
        if let attribute = attributes.first(where: { $0.type == .messageIntegritySHA256 }) {
            // May be cut to sixteen bytes or more, in steps of four (RFC 8489 §14.6).
            guard (16...32).contains(attribute.value.count), attribute.value.count % 4 == 0 else { return .invalid }
            return verdict(attribute, Digest.hmacSHA256(key.bytes, prefix(upTo: attribute)))
        }
        if let attribute = attributes.first(where: { $0.type == .messageIntegrity }) {
            guard attribute.value.count == 20 else { return .invalid }
            return verdict(attribute, Digest.hmacSHA1(key.bytes, prefix(upTo: attribute)))
        }
        return .absent
    }

    /// Checks the checksum that distinguishes STUN from other protocols (RFC 8489 §14.7).
    public var fingerprint: Verdict {
        guard let attribute = attributes.first(where: { $0.type == .fingerprint }) else { return .absent }
        guard attribute.value.count == 4, attribute.value.upperBound == bytes.count,
            let said = bytes.uint32(at: attribute.value.lowerBound)
        else { return .invalid }
        return said == CRC32.checksum(prefix(upTo: attribute)) ^ CRC32.stunMask ? .valid : .invalid
    }

    private func verdict(_ attribute: Attribute, _ digest: [UInt8]) -> Verdict {
        let said = Array(bytes[attribute.value])
        return Digest.areEqual(said, Array(digest.prefix(said.count))) ? .valid : .invalid
    }

    /// The bytes that an integrity attribute covers: everything before it, with a length as if it were the last.
    private func prefix(upTo attribute: Attribute) -> [UInt8] {
        var covered = Array(bytes[..<attribute.start])
        let length = UInt16(truncatingIfNeeded: attribute.value.upperBound - Self.headerSize)
        covered[2] = UInt8(truncatingIfNeeded: length >> 8)
        covered[3] = UInt8(truncatingIfNeeded: length)
        return covered
    }
}

/// The checksum of ISO 3309 and V.42, as FINGERPRINT uses it (RFC 8489 §14.7).
enum CRC32 {
    /// The mask of a fingerprint: "STUN" in ASCII.
    static let stunMask: UInt32 = 0x5354_554E

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
    }

    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var value = UInt32.max
        for byte in bytes { value = value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] }
        return ~value
    }
}
