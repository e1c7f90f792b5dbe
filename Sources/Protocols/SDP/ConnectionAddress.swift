internal import Core

/// A `c=` line: where media is to be sent (RFC 8866 §5.7).
public struct ConnectionAddress: Equatable, Hashable, Sendable {
    /// An IPv4 or IPv6 address, or a name; without the TTL and count of multicast.
    public var address: String
    /// `IP4` or `IP6`, as in the line.
    public var addressType: String

    /// Makes a line for an IPv4 or IPv6 address.
    public init(address: String) {
        self.address = address
        addressType = address.utf8.contains(UInt8(ascii: ":")) ? "IP6" : "IP4"
    }

    /// Reads `IN IP4 192.0.2.1`, and the shapes of multicast such as `IN IP4 233.252.0.1/127/3`.
    init?(parsing value: some StringProtocol) {
        let fields = value.split(separator: " ")
        guard fields.count == 3, fields[0] == "IN", fields[1] == "IP4" || fields[1] == "IP6" else { return nil }
        let address = fields[2].prefix { $0 != "/" }
        guard !address.isEmpty else { return nil }
        self.address = String(address)
        addressType = String(fields[1])
    }

    /// The line's value.
    var text: String { "IN \(addressType) \(address)" }

    /// The address of all zeros, by which older peers put a call on hold (RFC 3264 §8.4).
    var isUnspecified: Bool { SocketAddress(literal: address)?.isUnspecified ?? false }
}
