internal import Core

/// Traffic through TURN servers.
extension ICEAgent {
    /// How often a connection is reopened, for another server or from another port.
    private static let maximumReopenings = 2

    mutating func relay(_ server: Int, _ input: TURNInput, at now: Instant, into outbox: inout [ICEOutput]) {
        guard var relay = relays[server] else {
            commons.statistics.unexpected += 1
            return
        }
        var results: [TURNOutput] = []
        let dropped = relay.client.dropped
        relay.client.handle(input, at: now, into: &results)
        commons.statistics.malformed += relay.client.dropped - dropped
        relays[server] = relay
        for result in results { take(result, server, at: now, into: &outbox) }
    }

    private mutating func take(
        _ result: TURNOutput, _ server: Int, at now: Instant, into outbox: inout [ICEOutput]
    ) {
        switch result {
        case .transmit(let bytes): outbox.append(.sendToServer(bytes, server: server))
        case .allocated(let address):
            relays[server]?.isGathering = false
            allocated(address, server: server, into: &outbox)
            openCompanion(of: server, into: &outbox)
        case .redirected(let address): reopen(server, at: address, into: &outbox)
        case .permitted(let peer): permission(server, peer, isGranted: true)
        case .refused(let peer): permission(server, peer, isGranted: false)
        case .channelBound: break  // The path is looked at after every input.
        case .received(let data, let peer): received(data, from: peer, server, at: now, into: &outbox)
        case .failed(let failure): failed(failure, server, into: &outbox)
        case .ended: outbox.append(.closeServer(server))
        }
    }

    private mutating func permission(_ server: Int, _ peer: SocketAddress, isGranted: Bool) {
        list.permission(server: server, peer: peer, isGranted: isGranted)
        previous?.permission(server: server, peer: peer, isGranted: isGranted)
    }

    private mutating func received(
        _ data: [UInt8], from peer: SocketAddress, _ server: Int, at now: Instant, into outbox: inout [ICEOutput]
    ) {
        guard let message = try? STUNMessage(parsing: data), message.method == .binding else {
            outbox.append(.received(data, source: peer, server: server))
            return
        }
        take(message, CandidatePair.Key(base: .relay(server), remote: peer), at: now)
    }

    private mutating func failed(_ failure: TURNFailure, _ server: Int, into outbox: inout [ICEOutput]) {
        if failure.reason == .connectionInUse, let address = relays[server]?.address {
            reopen(server, at: address, into: &outbox)
            return
        }
        let isMissed = relays[server]?.isCompanion != true
        drop(server)
        if isMissed { outbox.append(.serverFailed(server, failure)) }
        outbox.append(.closeServer(server))
    }

    private mutating func reopen(_ server: Int, at address: SocketAddress, into outbox: inout [ICEOutput]) {
        outbox.append(.closeServer(server))
        guard let relay = relays[server], relay.reopenings < Self.maximumReopenings else {
            drop(server)
            return
        }
        let client = TURNClient(
            username: relay.client.username, password: relay.client.password, isStream: relay.client.isStream,
            families: relay.client.families, generator: commons.splitGenerator())
        var again = Relay(client: client, address: address, transport: relay.transport)
        again.reopenings = relay.reopenings + 1
        again.isCompanion = relay.isCompanion
        relays[server] = again
        outbox.append(.openServer(server, relay.transport, address: address))
    }

    /// Requests an IPv6 address too, over a separate connection, from a server that gives only one address per
    /// allocation.
    ///
    /// It has the server's number and ``ICEConfiguration/maximumServers``. A server without IPv6 refuses, which has no
    /// further effect.
    private mutating func openCompanion(of server: Int, into outbox: inout [ICEOutput]) {
        let number = server + ICEConfiguration.maximumServers
        guard let relay = relays[server], relay.client.givesOneFamily, !relay.isCompanion, relays[number] == nil
        else { return }
        let client = TURNClient(
            username: relay.client.username, password: relay.client.password, isStream: relay.client.isStream,
            families: .ipv6, generator: commons.splitGenerator())
        var companion = Relay(client: client, address: relay.address, transport: relay.transport)
        companion.isCompanion = true
        companion.isGathering = gathering.end != nil
        relays[number] = companion
        outbox.append(.openServer(number, relay.transport, address: relay.address))
    }

    mutating func serverClosed(_ server: Int, into outbox: inout [ICEOutput]) {
        guard relays[server] != nil else { return }
        relays[server]?.client.connectionLost()
        drop(server)
    }

    private mutating func drop(_ server: Int) {
        relays[server]?.isGathering = false
        locals.removeAll { $0.base == .relay(server) }
        list.remove(base: .relay(server))
        previous?.remove(base: .relay(server))
    }

    /// Requests what the pairs need: permissions for all, and channels for the pair in use and for others that answer,
    /// because the peer may send on them.
    mutating func prepareRelays(at now: Instant, into outbox: inout [ICEOutput]) {
        for server in relays.keys.sorted() {
            for peer in list.unpermitted(server: server) { relay(server, .permit(peer), at: now, into: &outbox) }
            for peer in list.answering(server: server) { relay(server, .bindChannel(peer), at: now, into: &outbox) }
            let key = list.selected ?? previous?.selected
            if let key, key.base == .relay(server) {
                relay(server, .bindChannel(key.remote), at: now, into: &outbox)
            }
        }
    }
}
