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
