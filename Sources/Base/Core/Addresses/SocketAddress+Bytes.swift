/// Addresses as the bytes that protocols carry them in.
extension SocketAddress {
    /// Makes an address from its bytes in network order: four for IPv4, sixteen for IPv6.
    ///
    /// - Returns: nil if there are not exactly four or sixteen.
    public init?(addressBytes bytes: some Collection<UInt8>, port: UInt16) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        for (index, byte) in bytes.enumerated() {
            let shifted = UInt64(byte) << (8 * UInt64(index % 8))
            if index < 8 { words.0 |= shifted } else { words.1 |= shifted }
        }
        self.init(
            low: UInt64(littleEndian: words.0), high: UInt64(littleEndian: words.1), scope: 0, port: port,
            family: bytes.count == 4 ? 4 : 6)
    }

    /// The address' bytes in network order: four for IPv4, sixteen for IPv6.
    public var addressBytes: [UInt8] {
        var bytes: [UInt8] = []
        for word in [low.littleEndian, high.littleEndian].prefix(isIPv6 ? 2 : 1) {
            for index: UInt64 in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * index))) }
        }
        return isIPv6 ? bytes : Array(bytes.prefix(4))
    }

    /// ``addressBytes``, but of an IPv4 address within IPv6 (RFC 4291 §2.5.5.2) its four.
    public var unmappedBytes: [UInt8] {
        let bytes = addressBytes
        let mapped: [UInt8] = Array(repeating: 0, count: 10) + [255, 255]
        return isIPv6 && bytes.starts(with: mapped) ? Array(bytes[12...]) : bytes
    }

    /// The same address with another port.
    public func withPort(_ port: UInt16) -> SocketAddress {
        var copy = self
        copy.port = port
        return copy
    }

    /// Whether this is an IPv6 address of the local link, fe80::/10.
    public var isLinkLocalIPv6: Bool {
        let bytes = low.littleEndian
        return isIPv6 && bytes & 0xFF == 0xFE && bytes >> 8 & 0xC0 == 0x80
    }

    /// Whether this is a multicast address: 224.0.0.0/4 or ff00::/8.
    public var isMulticast: Bool {
        let first = low.littleEndian & 0xFF
        return isIPv6 ? first == 0xFF : first >> 4 == 14
    }

    /// Whether the address cannot be that of one peer: it is unspecified, multicast or broadcast, or its port is 0.
    public var isUnusableAsPeer: Bool {
        let first = low.littleEndian & 0xFF
        return isUnspecified || (isIPv6 ? first == 0xFF : first >= 224) || port == 0
    }

    /// 127.0.0.1, port 0.
    public static let loopbackIPv4 = SocketAddress(
        low: UInt64(littleEndian: 0x0100_007F), high: 0, scope: 0, port: 0, family: 4)

    /// 0.0.0.0, port 0: every IPv4 address of the machine.
    public static let anyIPv4 = SocketAddress(low: 0, high: 0, scope: 0, port: 0, family: 4)

    private init(low: UInt64, high: UInt64, scope: UInt32, port: UInt16, family: UInt8) {
        self.low = low
        self.high = high
        self.scope = scope
        self.port = port
        self.family = family
    }
}
