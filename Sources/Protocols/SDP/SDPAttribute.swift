internal import Core

/// One `a=` line (RFC 8866 §5.13).
public struct SDPAttribute: Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The text before the colon. Names are case-sensitive.
    public var name: String
    /// After the colon; `nil` for a flag such as `rtcp-mux`.
    public var value: String?

    /// Makes an attribute.
    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }

    /// The line for logs: keys and passwords are left out. ``SessionDescription/serialized()`` has them.
    public var description: String {
        guard let value else { return "a=\(name)" }
        return Self.secretNames.contains(name) ? "a=\(name):(secret)" : "a=\(name):\(value)"
    }

    private static let secretNames: Set<String> = ["crypto", "ice-pwd", "key-mgmt"]
}

extension SDPAttribute: CustomReflectable {
    /// Shows what ``description`` shows, so that `dump` reveals no secret either.
    public var customMirror: Mirror { Mirror(self, children: ["line": description]) }
}

extension [SDPAttribute] {
    /// The first attribute's value of this name; the empty text for a flag.
    func value(_ name: String) -> String? { first { $0.name == name }.map { $0.value ?? "" } }

    /// All values of this name, in order.
    func values(_ name: String) -> [String] { filter { $0.name == name }.map { $0.value ?? "" } }

    /// Whether the name is there, with a value or without.
    func has(_ name: String) -> Bool { contains { $0.name == name } }

    /// The direction, if one is given.
    var direction: MediaDirection? {
        for attribute in self where attribute.value == nil {
            if let direction = MediaDirection(rawValue: attribute.name) { return direction }
        }
        return nil
    }
}

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
