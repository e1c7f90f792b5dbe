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
