package import Core

extension ClientAddress {
    /// The client's address of a request; a trusted proxy reports that of its own client.
    ///
    /// - Parameters:
    ///   - peer: The other end of the connection.
    ///   - forwarded: The values of `X-Forwarded-For`. Each proxy adds at the end, so that the last entry that is not a
    ///     trusted proxy's own counts; a client can forge those before it.
    ///   - proxies: The trusted proxies.
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
