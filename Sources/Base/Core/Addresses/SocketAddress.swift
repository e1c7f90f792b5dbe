// Addresses: IPv4 and IPv6 addresses as values and as text, for those that name hosts and own no socket.

package import CRealtime

/// An IPv4 or IPv6 address with a port. A plain value of 24 bytes, safe on the media path.
@frozen
public struct SocketAddress: Hashable, BitwiseCopyable, Sendable {
    /// The address' 16 bytes in network order, as two words of memory; IPv4 uses the first four.
    private var low: UInt64
    private var high: UInt64
    /// Interface index of a link-local IPv6 address, else 0.
    private var scope: UInt32
    /// Port in host byte order.
    public var port: UInt16
    /// 4 or 6.
    private var family: UInt8

    /// Parses a literal address; host names are not looked up.
    ///
    /// - Returns: nil if `host` is no literal IPv4 or IPv6 address ("192.0.2.1", "2001:db8::1", "fe80::1%eth0").
    public init?(host: String, port: UInt16) {
        var raw = handset_address()
        guard unsafe handset_address_parse(host, &raw) == 0 else { return nil }
        self.init(raw)
        self.port = port
    }

    /// Parses a literal address of a message: without a zone, which means something on this machine only.
    ///
    /// - Returns: nil if `text` is no literal IPv4 or IPv6 address.
    public init?(literal text: some StringProtocol, port: UInt16 = 0) {
        let isPlain = text.utf8.allSatisfy { byte in
            Hexadecimal.value(of: byte) != nil || byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
        }
        guard isPlain else { return nil }
        self.init(host: String(text), port: port)
    }

    /// Equality for the media path, where the generic `==` cannot be proved free of allocation.
    @_noAllocation @_noLocks
    public func isSame(as other: SocketAddress) -> Bool {
        low == other.low && high == other.high && port == other.port && family == other.family && scope == other.scope
    }

    /// Whether both are of one host; their ports may differ.
    @_noAllocation @_noLocks
    public func hasSameHost(as other: SocketAddress) -> Bool {
        low == other.low && high == other.high && family == other.family && scope == other.scope
    }

    /// The address without its port, as text.
    public var host: String {
        var raw = self.raw
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            guard let start = text.baseAddress else { return "" }
            unsafe handset_address_format(&raw, start)
            return unsafe String(cString: start)
        }
    }

    /// Whether this is an IPv6 address.
    public var isIPv6: Bool {
        @_noAllocation @_noLocks get { family == 6 }
    }

    /// Whether this is a loopback address: 127.0.0.0/8 or ::1.
    public var isLoopback: Bool {
        family == 4 ? low & 0xFF == 127 : low == 0 && high == UInt64(bigEndian: 1)
    }

    /// Whether this is the wildcard address, which means every address of the machine.
    public var isUnspecified: Bool { low == 0 && high == 0 }

    /// Takes an address over from the system's calls.
    @_noAllocation @_noLocks
    package init(_ raw: handset_address) {
        (low, high) = unsafe unsafeBitCast(raw.bytes, to: (UInt64, UInt64).self)
        scope = raw.scope
        port = raw.port
        family = raw.family
    }

    /// The address as the system's calls take it.
    package var raw: handset_address {
        @_noAllocation @_noLocks get {
            handset_address(
                bytes: unsafe unsafeBitCast((low, high), to: type(of: handset_address().bytes)), scope: scope,
                port: port, family: family)
        }
    }
}

extension SocketAddress: CustomStringConvertible {
    /// "192.0.2.1:5004" or "[2001:db8::1]:5004".
    public var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

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

/// A client's network, as coarse as addresses are assigned: one IPv4 address, or a /64 of IPv6.
package struct ClientAddress: Hashable, Sendable {
    private let bytes: [UInt8]

    /// Reads an address in its usual form, IPv6 with or without brackets; `nil` for anything else.
    package init?(_ text: some StringProtocol) {
        var name = String(text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text[...])
        if let zone = name.firstIndex(of: "%") { name = String(name[..<zone]) }
        guard let address = SocketAddress(host: name, port: 0) else { return nil }
        let whole = address.unmappedBytes
        bytes = whole.count == 4 ? whole : Array(whole[..<8])
    }

    private init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    /// A client that has no address, as over a local socket.
    package static let none = ClientAddress()

    /// One address for all addresses of this machine.
    package static let thisMachine = ClientAddress([127, 0, 0, 1])

    /// Whether it is this machine's: 127.0.0.0/8, or the /64 of `::1`, of which nothing else is given out.
    package var isThisMachine: Bool {
        switch bytes.count {
        case 4: bytes[0] == 127
        case 8: bytes.allSatisfy { $0 == 0 }
        default: false
        }
    }
}
