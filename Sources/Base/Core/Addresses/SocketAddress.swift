// Addresses: IPv4 and IPv6 addresses as values and as text, for those that name hosts and own no socket.

package import CRealtime

/// An IPv4 or IPv6 address with a port. A plain value of 24 bytes, safe on the media path.
@frozen
public struct SocketAddress: Hashable, BitwiseCopyable, Sendable {
    /// The address' 16 bytes in network order, as two words of memory; IPv4 uses the first four.
    var low: UInt64
    var high: UInt64
    /// Interface index of a link-local IPv6 address, else 0.
    var scope: UInt32
    /// Port in host byte order.
    public var port: UInt16
    /// 4 or 6.
    var family: UInt8

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
