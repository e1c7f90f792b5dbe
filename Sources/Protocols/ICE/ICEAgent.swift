public import Core

/// Finds a path to one peer for one stream and keeps it working: a full agent of RFC 8445 with one component.
///
/// It checks directly and through TURN servers, takes and gives candidates as they become known (RFC 8838), holds the
/// peer's consent (RFC 7675), and changes to another path that works when the one in use falls silent. It allocates
/// memory, so it does not belong on a thread with real-time duties.
///
/// Bounded: candidates, pairs, servers and answers to checks a second; see ``ICEConfiguration`` and
/// ``ICEStatistics`` for the counters of what was dropped.
public struct ICEAgent: ProtocolCore, Sendable {
    /// A generation that was replaced by a restart: in use until the present one has a path, and then answered for a
    /// short time.
    private struct Previous: Sendable {
        var list: CheckList
        /// Nil while it is in use.
        var end: Instant?
    }

    /// After a restart has found its path, checks of the old generation are answered for this long.
    private static let previousGrace = Duration.seconds(3)
    /// After this long a silence without another path, the path counts as disconnected.
    private static let disconnectDelay = Duration.seconds(3)

    private var commons: AgentCommons
    private var locals = LocalCandidates()
    private var gathering = Gathering()
    private var relays = Relays()
    /// The present generation.
    private var list: CheckList
    private var previous: Previous?
    /// Limit on accepted checks.
    private var grants = TokenBucket()
    private static let grantRate = TokenBucket.Rate(burst: 100, perSecond: 200)
    /// Limit on refused checks.
    private var refusals = TokenBucket()
    private static let refusalRate = TokenBucket.Rate(burst: 10, perSecond: 10)

    /// How far the agent has come.
    public private(set) var state = ICEState.new
    /// The path in use.
    public private(set) var path: ICEPath?

    /// Makes an agent that does nothing until ``ICEInput/start(localAddresses:)``.
    ///
    /// - Parameters:
    ///   - credentials: The local credentials; see ``ICECredentials/init(using:)``.
    ///   - generator: Draws transaction IDs and waits; must be unpredictable to others.
    public init(
        _ configuration: ICEConfiguration, credentials: ICECredentials,
        generator: some RandomNumberGenerator & Sendable
    ) {
        commons = AgentCommons(configuration, generator: generator)
        list = CheckList(local: credentials, pacing: configuration.pacing)
    }

    /// The local credentials for descriptions.
    public var credentials: ICECredentials { list.local }

    /// Whether we decide which path is used. May change if the peer, too, assumes the controlling role.
    public var isControlling: Bool { commons.isControlling }

    /// The local candidates, as signaled.
    public var localCandidates: [Candidate] { locals.all.map(\.candidate) }

    /// All valid paths, the best first: the peer's media may come from any of them, because the peer may not have
    /// changed to the selected one yet.
    public var validPaths: [ICEPath] {
        (list.validKeys + (previous?.list.validKeys ?? [])).map(path(of:))
    }

    /// Whether an answer with this transaction ID belongs to this agent. Used by drivers that share sockets among
    /// agents.
    public func isAwaiting(_ id: TransactionID) -> Bool {
        gathering.isAwaiting(id) || list.isAwaiting(id) || previous?.list.isAwaiting(id) ?? false
    }

    /// Whether an authenticated check or answer of the peer came from this address, directly or through a relay: data from
    /// other addresses is not the peer's. False after the end.
    public func hasPeer(at address: SocketAddress) -> Bool {
        guard state != .closed else { return false }
        return list.hasPeer(at: address) || previous?.list.hasPeer(at: address) ?? false
    }

    /// Whether checks to this user name fragment belong to this agent.
    public func answers(to usernameFragment: String) -> Bool {
        list.local.usernameFragment == usernameFragment || previous?.list.local.usernameFragment == usernameFragment
    }

    /// The statistics so far.
    public var statistics: ICEStatistics {
        var statistics = commons.statistics
        let pair = selectedPair
        statistics.path = path
        statistics.roundTrip = pair?.roundTrip
        statistics.smoothedRoundTrip = pair?.smoothedRoundTrip
        statistics.pairs = list.pairCount
        return statistics
    }

    /// The earliest of all that is due.
    public var nextDeadline: Instant? {
        guard state != .closed else { return relays.nextDeadline }
        let settings = commons.configuration
        let times = [
            gathering.nextDeadline, list.nextSend(settings), list.nextDecision(settings),
            previous?.list.nextSend(settings), previous?.list.nextDecision(settings), previous?.end, nextStateChange,
            relays.nextDeadline,
        ]
        return times.compactMap(\.self).min()
    }

    /// Takes one input at time `now`.
    public mutating func handle(_ input: ICEInput, at now: Instant, into outbox: inout [ICEOutput]) {
        if state == .closed {
            handleClosed(input, at: now, into: &outbox)
            return
        }
        switch input {
        case .start(let addresses): start(addresses, at: now, into: &outbox)
        case .localAddresses(let addresses): update(addresses, at: now, into: &outbox)
        case .remoteCredentials(let credentials, let isLite):
            list.setRemote(credentials, isLite: isLite, locals.all, &commons, at: now)
        case .remoteCandidate(let candidate): add(candidate, into: &outbox)
        case .remoteEndOfCandidates: list.endRemoteCandidates()
        case .datagram(let bytes, let local, let source):
            datagram(bytes, local: local, source: source, at: now, into: &outbox)
        case .serverOpened(let server): relay(server, .opened, at: now, into: &outbox)
        case .serverClosed(let server): serverClosed(server)
        case .serverBytes(let bytes, let server): relay(server, .bytes(bytes), at: now, into: &outbox)
        case .send(let data): send(data, at: now, into: &outbox)
        case .pathIsQuiet: list.lookAtSelected(at: now)
        case .restart(let credentials): restart(credentials, at: now, into: &outbox)
        case .anotherPeer: beginWithAnotherPeer()
        case .end:
            end(at: now, into: &outbox)
            return
        case .timerFired: timerFired(at: now, into: &outbox)
        }
        reconcile(at: now, into: &outbox)
    }

    private mutating func add(_ candidate: Candidate, into outbox: inout [ICEOutput]) {
        guard candidate.address == nil else {
            list.add(remote: candidate, locals.all, &commons)
            return
        }
        if list.takesName(of: candidate, &commons) { outbox.append(.unresolvedName(candidate)) }
    }

    private mutating func timerFired(at now: Instant, into outbox: inout [ICEOutput]) {
        for server in relays.numbers { relay(server, .timerFired, at: now, into: &outbox) }
        if let end = previous?.end, end <= now { previous = nil }
        if gathering.giveUp(at: now) { relays.giveUpGathering() }
    }

    private mutating func datagram(
        _ bytes: [UInt8], local: SocketAddress, source: SocketAddress, at now: Instant,
        into outbox: inout [ICEOutput]
    ) {
        guard locals.sockets.contains(local) else {
            commons.statistics.unexpected += 1
            return
        }
        guard let message = try? STUNMessage(parsing: bytes), message.method == .binding else {
            commons.statistics.malformed += 1
            return
        }
        if message.messageClass != .request, message.messageClass != .indication,
            let query = gathering.take(message, local: local, source: source, at: now)
        {
            gathered(message, query, into: &outbox)
            return
        }
        let isRelayOnly = commons.configuration.policy == .relayOnly
        guard !isRelayOnly else {
            commons.statistics.unexpected += 1
            return
        }
        take(message, CandidatePair.Key(base: .socket(local), remote: source), at: now)
    }

    /// Takes a STUN message of the peer's, direct or relayed.
    private mutating func take(_ message: STUNMessage, _ key: CandidatePair.Key, at now: Instant) {
        // Every check and answer has one (RFC 8445 §7.2.4, §7.3).
        guard message.fingerprint == .valid else {
            commons.statistics.malformed += 1
            return
        }
        switch message.messageClass {
        case .request: take(request: message, key, at: now)
        case .success, .failure:
            if list.isAwaiting(message.transactionID) {
                list.handle(response: message, key, &commons, at: now)
            } else if previous?.list.isAwaiting(message.transactionID) == true {
                previous?.list.handle(response: message, key, &commons, at: now)
            } else {
                commons.statistics.responsesUnmatched += 1
            }
        // Keeps a NAT's binding open, and carries nothing (RFC 8445 §11).
        case .indication: break
        }
    }

    private mutating func take(request: STUNMessage, _ key: CandidatePair.Key, at now: Instant) {
        let names = (request.text(.username) ?? "").split(separator: ":", maxSplits: 1).map(String.init)
        let fragment = names.first ?? ""
        let isPrevious = fragment != list.local.usernameFragment && fragment == previous?.list.local.usernameFragment
        let local = isPrevious ? previous?.list.local ?? list.local : list.local
        guard names.count == 2, fragment == local.usernameFragment,
            request.integrity(STUNKey(shortTerm: local.password)) == .valid
        else {
            commons.statistics.requestsUnauthenticated += 1
            let isProtected = request.contains(.messageIntegrity) || request.contains(.messageIntegritySHA256)
            let code: STUNErrorCode = isProtected && names.count == 2 ? .unauthenticated : .badRequest
            refuse(request, code, key: nil, to: key, at: now)
            return
        }
        guard request.unknownRequiredAttributes.isEmpty else {
            refuse(request, .unknownAttribute, key: STUNKey(shortTerm: local.password), to: key, at: now)
            return
        }
        guard grants.take(Self.grantRate, at: now) else {
            commons.statistics.requestsOverLimit += 1
            return
        }
        if isPrevious {
            previous?.list.handle(request: request, key, peerFragment: names[1], locals.all, &commons, at: now)
        } else {
            list.handle(request: request, key, peerFragment: names[1], locals.all, &commons, at: now)
        }
    }

    private mutating func refuse(
        _ request: STUNMessage, _ code: STUNErrorCode, key: STUNKey?, to destination: CandidatePair.Key,
        at now: Instant
    ) {
        guard refusals.take(Self.refusalRate, at: now) else {
            commons.statistics.requestsOverLimit += 1
            return
        }
        let bytes = STUNBuilder(refusing: request, code).finish(key: key, fingerprint: true)
        commons.send(bytes, from: destination.base, to: destination.remote)
    }

    // MARK: Candidates of our own (RFC 8445 §5.1.1)

    private mutating func start(_ addresses: [SocketAddress], at now: Instant, into outbox: inout [ICEOutput]) {
        guard !gathering.isUnderWay, locals.sockets.isEmpty, relays.isEmpty else { return }
        gather(addresses, at: now, into: &outbox)
    }

    private mutating func gather(_ addresses: [SocketAddress], at now: Instant, into outbox: inout [ICEOutput]) {
        gathering.begin(until: now.advanced(by: commons.configuration.gatheringTimeout))
        list.gatheringHasEnded = false
        for address in addresses { addSocket(address, at: now, into: &outbox) }
        for (number, server) in servers {
            if let opening = relays.open(number, server, &commons) { outbox.append(opening) }
        }
    }

    private var servers: [(Int, ICEServer)] {
        Array(commons.configuration.servers.prefix(ICEConfiguration.maximumServers).enumerated())
    }

    private mutating func addSocket(_ address: SocketAddress, at now: Instant, into outbox: inout [ICEOutput]) {
        guard locals.addSocket(address), commons.configuration.policy == .all else { return }
        announce(locals.addHost(address, fragment: list.local.usernameFragment), into: &outbox)
        for (number, server) in servers {
            guard case .stun = server.kind, server.address.isIPv6 == address.isIPv6,
                server.address.isLoopback || !address.isLoopback, !address.isLinkLocalIPv6
            else { continue }
            gathering.ask(number, at: server.address, from: address, &commons, at: now)
        }
    }

    /// A STUN server has answered.
    private mutating func gathered(
        _ response: STUNMessage, _ query: Gathering.Query, into outbox: inout [ICEOutput]
    ) {
        guard response.messageClass == .success,
            let mapped = response.address(.xorMappedAddress) ?? response.address(.mappedAddress),
            mapped.isIPv6 == query.local.isIPv6, !mapped.isUnusableAsPeer
        else { return }
        announce(locals.addReflexive(mapped, query, fragment: list.local.usernameFragment), into: &outbox)
    }

    /// A TURN server has given an address.
    private mutating func allocated(_ address: SocketAddress, server: Int, into outbox: inout [ICEOutput]) {
        relays.hasGathered(server)
        guard let (serverAddress, transport) = relays.server(server) else { return }
        let candidate = locals.addRelayed(
            address, server: server, at: serverAddress, transport, fragment: list.local.usernameFragment)
        announce(candidate, into: &outbox)
        let companion = relays.openCompanion(of: server, isGathering: gathering.isUnderWay, &commons)
        if let companion { outbox.append(companion) }
    }

    /// Pairs a candidate and signals it, if it is new.
    private mutating func announce(_ local: LocalCandidate?, into outbox: inout [ICEOutput]) {
        guard let local else { return }
        list.add(local: local, &commons)
        outbox.append(.localCandidate(local.candidate))
    }

    /// The machine has other addresses than before.
    private mutating func update(_ addresses: [SocketAddress], at now: Instant, into outbox: inout [ICEOutput]) {
        for gone in locals.sockets where !addresses.contains(gone) {
            locals.removeSocket(gone)
            gathering.remove(local: gone)
            list.remove(base: .socket(gone))
            previous?.list.remove(base: .socket(gone))
        }
        let added = addresses.filter { !locals.sockets.contains($0) }
        guard !added.isEmpty else { return }
        if !gathering.isUnderWay {
            gathering.begin(until: now.advanced(by: commons.configuration.gatheringTimeout))
        }
        for address in added { addSocket(address, at: now, into: &outbox) }
    }

    /// Everything has answered or been given up.
    private mutating func concludeGathering(into outbox: inout [ICEOutput]) {
        guard !relays.isGathering, gathering.conclude() else { return }
        list.gatheringHasEnded = true
        outbox.append(.gatheringComplete)
    }

    /// Starts again with the local candidates and credentials, which stay.
    private mutating func beginWithAnotherPeer() {
        let hasGathered = list.gatheringHasEnded
        list = CheckList(local: list.local, pacing: commons.configuration.pacing)
        list.gatheringHasEnded = hasGathered
        previous = nil
    }

    /// Begins a new generation (RFC 8445 §9).
    private mutating func restart(_ credentials: ICECredentials, at now: Instant, into outbox: inout [ICEOutput]) {
        if list.selectedPair?.isValid == true || previous == nil { previous = Previous(list: list) }
        list = CheckList(local: credentials, pacing: commons.configuration.pacing)
        locals.setFragment(credentials.usernameFragment)
        for local in locals.all { outbox.append(.localCandidate(local.candidate)) }
        relays.removeEnded()
        gather(locals.sockets, at: now, into: &outbox)
    }

    // MARK: Traffic through TURN servers

    private mutating func relay(
        _ server: Int, _ input: TURNInput, at now: Instant, into outbox: inout [ICEOutput]
    ) {
        for result in relays.handle(input, server, &commons.statistics, at: now) {
            take(result, server, at: now, into: &outbox)
        }
    }

    private mutating func take(
        _ result: TURNOutput, _ server: Int, at now: Instant, into outbox: inout [ICEOutput]
    ) {
        switch result {
        case .transmit(let bytes): outbox.append(.sendToServer(bytes, server: server))
        case .allocated(let address): allocated(address, server: server, into: &outbox)
        case .redirected(let address):
            reopen(server, at: address, orElse: TURNFailure(.redirectedTooOften), into: &outbox)
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
        previous?.list.permission(server: server, peer: peer, isGranted: isGranted)
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
        if failure.reason == .connectionInUse, let address = relays.server(server)?.address {
            reopen(server, at: address, orElse: failure, into: &outbox)
            return
        }
        giveUp(server, failure, into: &outbox)
    }

    private mutating func giveUp(_ server: Int, _ failure: TURNFailure, into outbox: inout [ICEOutput]) {
        drop(server)
        if relays.isMissed(server) { outbox.append(.serverFailed(server, failure)) }
        outbox.append(.closeServer(server))
    }

    /// - Parameter failure: What is reported if that was done too often.
    private mutating func reopen(
        _ server: Int, at address: SocketAddress, orElse failure: TURNFailure, into outbox: inout [ICEOutput]
    ) {
        if let opening = relays.reopen(server, at: address, &commons) {
            outbox += [.closeServer(server), opening]
        } else {
            giveUp(server, failure, into: &outbox)
        }
    }

    private mutating func serverClosed(_ server: Int) {
        if relays.connectionLost(server) { drop(server) }
    }

    /// Nothing can be sent through a server any more.
    private mutating func drop(_ server: Int) {
        relays.hasGathered(server)
        locals.remove(base: .relay(server))
        list.remove(base: .relay(server))
        previous?.list.remove(base: .relay(server))
    }

    /// Requests what the pairs need: permissions for all, and channels for the pair in use and for others that answer,
    /// because the peer may send on them.
    private mutating func prepareRelays(at now: Instant, into outbox: inout [ICEOutput]) {
        for server in relays.numbers {
            for peer in list.unpermitted(server: server) { relay(server, .permit(peer), at: now, into: &outbox) }
            for peer in list.answering(server: server) { relay(server, .bindChannel(peer), at: now, into: &outbox) }
            let key = list.selected ?? previous?.list.selected
            if let key, key.base == .relay(server) {
                relay(server, .bindChannel(key.remote), at: now, into: &outbox)
            }
        }
    }

    // MARK: The consequences of an input: packets to send, the path in use, the state

    private mutating func reconcile(at now: Instant, into outbox: inout [ICEOutput]) {
        concludeGathering(into: &outbox)
        gathering.send(&commons, at: now)
        list.sendDueChecks(&commons, at: now)
        list.settle(&commons, at: now)
        // A decision may require a packet at once.
        list.sendDueChecks(&commons, at: now)
        previous?.list.sendDueChecks(&commons, at: now)
        previous?.list.settle(&commons, at: now)
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

    private mutating func send(_ data: [UInt8], at now: Instant, into outbox: inout [ICEOutput]) {
        guard let key = pathKey else { return }
        transmit(data, key.base, key.remote, at: now, into: &outbox)
    }

    /// The pair that carries data: the new generation's once it is settled, or once the old generation has none.
    private var pathKey: CandidatePair.Key? {
        if let previous, previous.end == nil, let key = previous.list.selectedPair?.key, list.nominated == nil {
            return key
        }
        return list.selected
    }

    /// The pair that works for data, in this generation or in the previous one.
    private var selectedPair: CandidatePair? { list.selectedPair ?? previous?.list.selectedPair }

    private mutating func updatePath(at now: Instant, into outbox: inout [ICEOutput]) {
        let key = pathKey
        if let old = previous, old.end == nil, list.nominated != nil || old.list.selected == nil {
            previous?.end = now.advanced(by: Self.previousGrace)
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
                relays.route(server, to: key.remote)
            }
        let isNominated = list.nominated == key || previous?.list.nominated == key
        return ICEPath(route: route, remote: key.remote, isNominated: isNominated)
    }

    private mutating func updateState(at now: Instant, into outbox: inout [ICEOutput]) {
        let next = presentState(at: now)
        guard next != state else { return }
        state = next
        // By now the checks keep the NAT bindings open (RFC 8445 §5.1.1.4).
        if next == .completed { gathering.endKeepAlive() }
        outbox.append(.stateChanged(next))
    }

    private func presentState(at now: Instant) -> ICEState {
        if let pair = selectedPair {
            if pair.silence(at: now) >= Self.disconnectDelay { return .disconnected }
            return list.hasSettled(on: pair.key) ? .completed : .connected
        }
        if list.hasFailed(commons.configuration, at: now) || isStranded { return .failed }
        if list.remote == nil { return state == .failed ? .failed : .new }
        return list.hasBeenValid ? .disconnected : .checking
    }

    /// There is no local base, and there will be none: only TURN servers were allowed, and all have failed. The peer's
    /// checks, for which the patience timer exists (RFC 8863), cannot reach us either.
    private var isStranded: Bool {
        list.gatheringHasEnded && locals.all.isEmpty && commons.configuration.policy == .relayOnly
    }

    /// When the state changes although nothing happens.
    private var nextStateChange: Instant? {
        let time = selectedPair?.unansweredSince?.advanced(by: Self.disconnectDelay)
        return time.flatMap { $0 > list.decidedAt ? $0 : nil }
    }

    // MARK: The end

    private mutating func end(at now: Instant, into outbox: inout [ICEOutput]) {
        let hadPath = path != nil
        state = .closed
        path = nil
        previous = nil
        for server in relays.liveNumbers { relay(server, .end, at: now, into: &outbox) }
        if hadPath { outbox.append(.pathLost) }
        outbox.append(.stateChanged(.closed))
    }

    /// After the end only allocations are given back.
    private mutating func handleClosed(_ input: ICEInput, at now: Instant, into outbox: inout [ICEOutput]) {
        switch input {
        case .timerFired:
            for server in relays.numbers { relay(server, .timerFired, at: now, into: &outbox) }
        case .serverBytes(let bytes, let server): relay(server, .bytes(bytes), at: now, into: &outbox)
        case .serverClosed(let server): relays.remove(server)
        case .start, .localAddresses, .remoteCredentials, .remoteCandidate, .remoteEndOfCandidates, .datagram,
            .serverOpened, .send, .pathIsQuiet, .restart, .anotherPeer, .end:
            break
        }
    }
}
