internal import Core

/// The consequences of an input: packets to send, the path in use, the state.
extension ICEAgent {
    /// After a restart has found its path, checks of the old generation are answered for this long.
    private static let previousGrace = Duration.seconds(3)
    /// After this long a silence without another path, the path counts as disconnected.
    private static let disconnectDelay = Duration.seconds(3)

    mutating func reconcile(at now: Instant, into outbox: inout [ICEOutput]) {
        concludeGathering(into: &outbox)
        gathering.send(&commons, at: now)
        list.sendDueChecks(&commons, at: now)
        list.settle(&commons, at: now)
        // A decision may require a packet at once.
        list.sendDueChecks(&commons, at: now)
        previous?.sendDueChecks(&commons, at: now)
        previous?.settle(&commons, at: now)
        flush(at: now, into: &outbox)
        prepareRelays(at: now, into: &outbox)
        updatePath(at: now, into: &outbox)
        updateState(at: now, into: &outbox)
    }

    private mutating func flush(at now: Instant, into outbox: inout [ICEOutput]) {
        let sendings = commons.sendings
        commons.sendings = []
        for sending in sendings { transmit(sending.bytes, sending.base, sending.remote, at: now, into: &outbox) }
    }

    private mutating func transmit(
        _ bytes: [UInt8], _ base: Base, _ remote: SocketAddress, at now: Instant, into outbox: inout [ICEOutput]
    ) {
        switch base {
        case .socket(let local): outbox.append(.transmit(bytes, local: local, to: remote))
        case .relay(let server): relay(server, .send(bytes, to: remote), at: now, into: &outbox)
        }
    }

    mutating func send(_ data: [UInt8], at now: Instant, into outbox: inout [ICEOutput]) {
        guard let key = pathKey else { return }
        transmit(data, key.base, key.remote, at: now, into: &outbox)
    }

    /// The pair that carries data: the new generation's once it is settled, or once the old generation has none.
    private var pathKey: CandidatePair.Key? {
        if let old = previous, previousEnd == nil, let key = old.pair(old.selected)?.key, list.nominated == nil {
            return key
        }
        return list.selected
    }

    /// All valid paths, the best first: the peer's media may come from any of them, because the peer may not have
    /// changed to the selected one yet.
    public var validPaths: [ICEPath] {
        let pairs = list.pairs.filter(\.isValid) + (previous?.pairs.filter(\.isValid) ?? [])
        return pairs.map { path(of: $0.key) }
    }

    private mutating func updatePath(at now: Instant, into outbox: inout [ICEOutput]) {
        let key = pathKey
        if let current = previous, previousEnd == nil, list.nominated != nil || current.selected == nil {
            previousEnd = now.advanced(by: Self.previousGrace)
        }
        let current = key.map(path(of:))
        guard current != path else { return }
        if let path, let current, !path.isSameWay(as: current) {
            commons.statistics.pathChanges += 1
        }
        path = current
        outbox.append(current.map(ICEOutput.pathSelected) ?? .pathLost)
    }

    private func path(of key: CandidatePair.Key) -> ICEPath {
        let route: ICEPath.Route =
            switch key.base {
            case .socket(let local): .direct(local: local)
            case .relay(let server):
                .relayed(
                    server: server, relay: relays[server]?.client.relay(for: key.remote) ?? key.remote,
                    channel: relays[server]?.client.channel(of: key.remote))
            }
        let isNominated = list.nominated == key || previous?.nominated == key
        return ICEPath(route: route, remote: key.remote, isNominated: isNominated)
    }

    private mutating func updateState(at now: Instant, into outbox: inout [ICEOutput]) {
        let next = presentState(at: now)
        guard next != state else { return }
        state = next
        // By now the checks keep the NAT bindings open (RFC 8445 §5.1.1.4).
        if next == .completed { gathering.bindings = [] }
        outbox.append(.stateChanged(next))
    }

    private func presentState(at now: Instant) -> ICEState {
        if let pair = list.pair(list.selected) ?? previous.flatMap({ $0.pair($0.selected) }) {
            if pair.silence(at: now) >= Self.disconnectDelay { return .disconnected }
            let isDone =
                list.nominated == pair.key && list.remoteHasEnded && list.gatheringHasEnded
                && !list.pairs.contains { $0.isOpen }
            return isDone ? .completed : .connected
        }
        if list.hasFailed(commons.configuration, at: now) || isStranded { return .failed }
        if list.remote == nil { return state == .failed ? .failed : .new }
        return list.firstValidAt == nil ? .checking : .disconnected
    }

    /// There is no local base, and there will be none: only TURN servers were allowed, and all have failed. The peer's
    /// checks, for which the patience timer exists (RFC 8863), cannot reach us either.
    private var isStranded: Bool {
        list.gatheringHasEnded && locals.isEmpty && commons.configuration.policy == .relayOnly
    }

    /// When the state changes although nothing happens.
    var nextStateChange: Instant? {
        let pair = list.pair(list.selected) ?? previous.flatMap { $0.pair($0.selected) }
        let time = pair?.unansweredSince?.advanced(by: Self.disconnectDelay)
        return time.flatMap { $0 > list.decidedAt ? $0 : nil }
    }

    // MARK: The end

    mutating func end(at now: Instant, into outbox: inout [ICEOutput]) {
        let hadPath = path != nil
        state = .closed
        path = nil
        previous = nil
        for server in relays.keys.sorted() where relays[server]?.client.hasEnded == false {
            relay(server, .end, at: now, into: &outbox)
        }
        if hadPath { outbox.append(.pathLost) }
        outbox.append(.stateChanged(.closed))
    }

    /// After the end only allocations are given back.
    mutating func handleClosed(_ input: ICEInput, at now: Instant, into outbox: inout [ICEOutput]) {
        switch input {
        case .timerFired:
            for server in relays.keys.sorted() { relay(server, .timerFired, at: now, into: &outbox) }
        case .serverBytes(let bytes, let server): relay(server, .bytes(bytes), at: now, into: &outbox)
        case .serverClosed(let server): relays[server] = nil
        case .start, .localAddresses, .remoteCredentials, .remoteCandidate, .remoteEndOfCandidates, .datagram,
            .serverOpened, .send, .pathIsQuiet, .restart, .anotherPeer, .end:
            break
        }
    }
}
