package import Core

extension ClientAddress {
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
