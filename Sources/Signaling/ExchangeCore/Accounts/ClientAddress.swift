internal import Glibc

/// Where a client is, as coarsely as addresses are given out: one IPv4 address, or a /64 of IPv6.
package struct ClientAddress: Hashable, Sendable {
    private let bytes: [UInt8]

    /// Reads an address in its usual form, IPv6 with or without brackets; `nil` for anything else.
    package init?(_ text: some StringProtocol) {
        var name = String(text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text[...])
        if let zone = name.firstIndex(of: "%") { name = String(name[..<zone]) }
        var four = [UInt8](repeating: 0, count: 4)
        var six = [UInt8](repeating: 0, count: 16)
        // Both write exactly the sizes of their address families.
        if unsafe inet_pton(AF_INET, name, &four) == 1 {
            bytes = four
        } else if unsafe inet_pton(AF_INET6, name, &six) == 1 {
            let mapped: [UInt8] = Array(repeating: 0, count: 10) + [255, 255]
            bytes = Array(six.starts(with: mapped) ? six[12...] : six[..<8])
        } else {
            return nil
        }
    }

    private init() { bytes = [] }

    /// A client that has no address, as over a local socket.
    package static let none = ClientAddress()

    /// Whether it is this machine's: 127.0.0.0/8, or the /64 of `::1`, of which nothing else is given out.
    package var isThisMachine: Bool {
        switch bytes.count {
        case 4: bytes[0] == 127
        case 8: bytes.allSatisfy { $0 == 0 }
        default: false
        }
    }

    /// Where a request comes from, which a trusted proxy says of its client.
    ///
    /// - Parameters:
    ///   - peer: The other end of the connection.
    ///   - forwarded: The values of `X-Forwarded-For`. Each proxy adds at the end, so that the last entry that is not a
    ///     trusted proxy's own counts; those before it anybody can have made up.
    ///   - proxies: Those to be trusted.
    package static func of(peer: ClientAddress, forwarded: [String], proxies: [ClientAddress]) -> ClientAddress {
        guard proxies.contains(peer) else { return peer }
        var result = peer
        for entry in forwarded.joined(separator: ",").split(separator: ",").reversed() {
            let text = entry.drop { $0 == " " }.prefix { $0 != " " }
            guard let address = ClientAddress(text) else { break }
            result = address
            if !proxies.contains(address) { break }
        }
        return result
    }
}
