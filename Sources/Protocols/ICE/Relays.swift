internal import Core

/// The connections to TURN servers, each with its allocation, by the server's number.
///
/// A second connection to a server, for an address of IPv6, has the server's number and
/// ``ICEConfiguration/maximumServers``.
struct Relays: Sendable {
    private struct Relay: Sendable {
        var client: TURNClient
        /// The server's address, after a possible redirection.
        var address: SocketAddress
        let transport: ICEServer.Transport
        var isGathering = true
        /// The second allocation at a server, for IPv6: its failure is not reported.
        var isCompanion = false
        /// How often the connection was reopened: for another server, or from another port.
        var reopenings = 0
    }

    /// How often a connection is reopened, for another server or from another port.
    private static let maximumReopenings = 2

    private var relays: [Int: Relay] = [:]

    var isEmpty: Bool { relays.isEmpty }

    var numbers: [Int] { relays.keys.sorted() }

    /// The servers that have an allocation, or are asked for one.
    var liveNumbers: [Int] { numbers.filter { relays[$0]?.client.hasEnded == false } }

    /// Whether a server may still give an address.
    var isGathering: Bool { relays.values.contains(where: \.isGathering) }

    var nextDeadline: Instant? { relays.values.compactMap(\.client.nextDeadline).min() }

    /// The server's address after a possible redirection, and how it is reached.
    func server(_ number: Int) -> (address: SocketAddress, transport: ICEServer.Transport)? {
        relays[number].map { ($0.address, $0.transport) }
    }

    /// The way to a peer through a server.
    func route(_ number: Int, to peer: SocketAddress) -> ICEPath.Route {
        let client = relays[number]?.client
        return .relayed(server: number, relay: client?.relay(for: peer) ?? peer, channel: client?.channel(of: peer))
    }

    /// Whether a failure of this connection is reported: there is no other way through the server.
    func isMissed(_ number: Int) -> Bool { relays[number]?.isCompanion != true }

    // MARK: Connections

    /// Opens a connection to a server, unless there is one.
    mutating func open(_ number: Int, _ server: ICEServer, _ commons: inout AgentCommons) -> ICEOutput? {
        guard case .turn(let transport, let username, let password) = server.kind, relays[number] == nil else {
            return nil
        }
        let client = TURNClient(
            username: username, password: password, isStream: transport != .udp,
            generator: commons.splitGenerator())
        relays[number] = Relay(client: client, address: server.address, transport: transport)
        return .openServer(number, transport, address: server.address)
    }

    /// Opens a connection to a server again: to another address, or from another port. Nil if that was done too often.
    mutating func reopen(_ number: Int, at address: SocketAddress, _ commons: inout AgentCommons) -> ICEOutput? {
        guard let relay = relays[number], relay.reopenings < Self.maximumReopenings else { return nil }
        let client = TURNClient(like: relay.client, generator: commons.splitGenerator())
        var again = Relay(client: client, address: address, transport: relay.transport)
        again.reopenings = relay.reopenings + 1
        again.isCompanion = relay.isCompanion
        relays[number] = again
        return .openServer(number, relay.transport, address: address)
    }

    /// Requests an IPv6 address too, over a separate connection, from a server that gives only one address per
    /// allocation. A server without IPv6 refuses, which has no further effect.
    mutating func openCompanion(of number: Int, isGathering: Bool, _ commons: inout AgentCommons) -> ICEOutput? {
        let companionNumber = number + ICEConfiguration.maximumServers
        guard let relay = relays[number], relay.client.givesOneFamily, !relay.isCompanion,
            relays[companionNumber] == nil
        else { return nil }
        let client = TURNClient(like: relay.client, families: .ipv6, generator: commons.splitGenerator())
        var companion = Relay(client: client, address: relay.address, transport: relay.transport)
        companion.isCompanion = true
        companion.isGathering = isGathering
        relays[companionNumber] = companion
        return .openServer(companionNumber, relay.transport, address: relay.address)
    }

    /// The connection is gone. False if it was not known.
    mutating func connectionLost(_ number: Int) -> Bool {
        guard relays[number] != nil else { return false }
        relays[number]?.client.connectionLost()
        return true
    }

    mutating func remove(_ number: Int) { relays[number] = nil }

    /// A new generation asks again the servers whose allocations have failed.
    mutating func removeEnded() {
        for (number, relay) in relays where relay.client.hasEnded { relays[number] = nil }
    }

    // MARK: Gathering

    /// The server has given its address, or will not.
    mutating func hasGathered(_ number: Int) { relays[number]?.isGathering = false }

    mutating func giveUpGathering() {
        for number in relays.keys { relays[number]?.isGathering = false }
    }

    // MARK: Traffic

    /// Passes an input to a server's client.
    ///
    /// - Returns: What the client asks for.
    mutating func handle(
        _ input: TURNInput, _ number: Int, _ statistics: inout ICEStatistics, at now: Instant
    ) -> [TURNOutput] {
        guard var relay = relays[number] else {
            statistics.unexpected += 1
            return []
        }
        var results: [TURNOutput] = []
        let dropped = relay.client.dropped
        relay.client.handle(input, at: now, into: &results)
        statistics.malformed += relay.client.dropped - dropped
        relays[number] = relay
        return results
    }
}
