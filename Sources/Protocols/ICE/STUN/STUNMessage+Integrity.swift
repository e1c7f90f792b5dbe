internal import Cryptography

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
