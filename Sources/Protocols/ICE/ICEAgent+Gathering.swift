internal import Core

/// Finding candidates of our own (RFC 8445 §5.1.1).
extension ICEAgent {
    mutating func start(_ addresses: [SocketAddress], at now: Instant, into outbox: inout [ICEOutput]) {
        guard gathering.end == nil, localAddresses.isEmpty, relays.isEmpty else { return }
        gather(addresses, at: now, into: &outbox)
    }

    private mutating func gather(_ addresses: [SocketAddress], at now: Instant, into outbox: inout [ICEOutput]) {
        gathering.end = now.advanced(by: commons.configuration.gatheringTimeout)
        list.gatheringHasEnded = false
        for address in addresses { addSocket(address, at: now, into: &outbox) }
        for (number, server) in servers {
            guard case .turn(let transport, let username, let password) = server.kind, relays[number] == nil else {
                continue
            }
            let client = TURNClient(
                username: username, password: password, isStream: transport != .udp,
                generator: commons.splitGenerator())
            relays[number] = Relay(client: client, address: server.address, transport: transport)
            outbox.append(.openServer(number, transport, address: server.address))
        }
    }

    private var servers: [(Int, ICEServer)] {
        Array(commons.configuration.servers.prefix(ICEConfiguration.maximumServers).enumerated())
    }

    private mutating func addSocket(_ address: SocketAddress, at now: Instant, into outbox: inout [ICEOutput]) {
        guard localAddresses.count < ICEConfiguration.maximumLocalAddresses, !localAddresses.contains(address) else {
            return
        }
        localAddresses.append(address)
        guard commons.configuration.policy == .all else { return }
        announce(
            LocalCandidate(
                candidate: Candidate(
                    foundation: foundation("host \(address.host)"),
                    priority: CandidateType.host.priority(localPreference: preference(of: address)),
                    address: address, type: .host),
                base: .socket(address)),
            into: &outbox)
        for (number, server) in servers {
            guard case .stun = server.kind, server.address.isIPv6 == address.isIPv6,
                server.address.isLoopback || !address.isLoopback, !address.isLinkLocalIPv6
            else { continue }
            gathering.ask(number, at: server.address, from: address, &commons, at: now)
        }
    }

    /// The order in which the addresses were given counts; each has its own number (RFC 8445 §5.1.2.1).
    private func preference(of address: SocketAddress, less: Int = 0) -> UInt16 {
        let place = localAddresses.firstIndex(of: address) ?? 0
        return UInt16(clamping: 65_535 - 64 * place - less)
    }

    /// A STUN server has answered.
    mutating func gathered(_ response: STUNMessage, _ query: Gathering.Query, into outbox: inout [ICEOutput]) {
        guard response.messageClass == .success,
            let mapped = response.address(.xorMappedAddress) ?? response.address(.mappedAddress),
            mapped.isIPv6 == query.local.isIPv6, !mapped.isUnusableAsPeer
        else { return }
        let priority = CandidateType.serverReflexive.priority(
            localPreference: preference(of: query.local, less: query.server))
        announce(
            LocalCandidate(
                candidate: Candidate(
                    foundation: foundation("srflx \(query.local.host) \(query.serverAddress.host)"),
                    priority: priority, address: mapped, type: .serverReflexive, relatedAddress: query.local),
                base: .socket(query.local)),
            into: &outbox)
    }

    /// A TURN server has given an address.
    mutating func allocated(_ relayAddress: SocketAddress, server: Int, into outbox: inout [ICEOutput]) {
        guard let relay = relays[server] else { return }
        // Of two at one server, the one of IPv6 comes first, as among hosts (RFC 8421 §4).
        let family: UInt16 = relayAddress.isIPv6 ? 0 : 64
        let preference: UInt16 =
            switch relay.transport {
            case .udp: 60_000
            case .tcp: 40_000
            case .tls: 20_000
            }
        announce(
            LocalCandidate(
                candidate: Candidate(
                    foundation: foundation("relay \(relay.transport) \(relay.address.host) \(relayAddress.host)"),
                    priority: CandidateType.relayed.priority(
                        localPreference: preference - UInt16(clamping: server) - family),
                    address: relayAddress, type: .relayed, relatedAddress: relayAddress),
                base: .relay(server)),
            into: &outbox)
    }

    private mutating func foundation(_ kind: String) -> String {
        let number = foundations[kind] ?? foundations.count + 1
        foundations[kind] = number
        return String(number)
    }

    private mutating func announce(_ local: LocalCandidate, into outbox: inout [ICEOutput]) {
        // Candidates with the same base and address are redundant (RFC 8445 §5.1.3).
        let isKnown = locals.contains {
            $0.candidate.address == local.candidate.address && $0.base == local.base
        }
        guard !isKnown else { return }
        var local = local
        local.candidate.usernameFragment = list.local.usernameFragment
        locals.append(local)
        list.add(local: local, &commons)
        outbox.append(.localCandidate(local.candidate))
    }

    /// The machine has other addresses than before.
    mutating func update(_ addresses: [SocketAddress], at now: Instant, into outbox: inout [ICEOutput]) {
        for gone in localAddresses where !addresses.contains(gone) {
            localAddresses.removeAll { $0 == gone }
            locals.removeAll { $0.base == .socket(gone) }
            gathering.remove(local: gone)
            list.remove(base: .socket(gone))
            previous?.remove(base: .socket(gone))
        }
        let added = addresses.filter { !localAddresses.contains($0) }
        guard !added.isEmpty else { return }
        if gathering.end == nil { gathering.end = now.advanced(by: commons.configuration.gatheringTimeout) }
        for address in added { addSocket(address, at: now, into: &outbox) }
    }

    /// Everything has answered or been given up.
    mutating func concludeGathering(into outbox: inout [ICEOutput]) {
        guard gathering.end != nil, gathering.queries.isEmpty, !relays.values.contains(where: \.isGathering) else {
            return
        }
        gathering.end = nil
        list.gatheringHasEnded = true
        outbox.append(.gatheringComplete)
    }

    /// Starts again with the local candidates and credentials, which stay.
    mutating func beginWithAnotherPeer() {
        let hasGathered = list.gatheringHasEnded
        list = CheckList(local: list.local, pacing: commons.configuration.pacing)
        list.gatheringHasEnded = hasGathered
        previous = nil
        previousEnd = nil
    }

    /// Begins a new generation (RFC 8445 §9).
    mutating func restart(_ credentials: ICECredentials, at now: Instant, into outbox: inout [ICEOutput]) {
        if list.pair(list.selected)?.isValid == true || previous == nil {
            previous = list
            previousEnd = nil
        }
        list = CheckList(local: credentials, pacing: commons.configuration.pacing)
        for index in locals.indices {
            locals[index].candidate.usernameFragment = credentials.usernameFragment
            outbox.append(.localCandidate(locals[index].candidate))
        }
        for (server, relay) in relays where relay.client.hasEnded { relays[server] = nil }
        gather(localAddresses, at: now, into: &outbox)
    }
}
