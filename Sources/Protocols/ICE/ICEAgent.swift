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
    /// A TURN server in use.
    struct Relay: Sendable {
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

    var commons: AgentCommons
    var locals: [LocalCandidate] = []
    var localAddresses: [SocketAddress] = []
    var foundations: [String: Int] = [:]
    var gathering = Gathering()
    var relays: [Int: Relay] = [:]
    /// The present generation.
    var list: CheckList
    /// The previous list: in use until the present one has a path, and then answered for a short time.
    var previous: CheckList?
    var previousEnd: Instant?
    /// Limit on accepted checks: 200 per second, with bursts of 100.
    private var grants = TokenBucket(capacity: 100, interval: .milliseconds(5))
    /// Limit on refused checks: 10 per second, with bursts of 10.
    private var refusals = TokenBucket(capacity: 10, interval: .milliseconds(100))

    /// How far the agent has come.
    public internal(set) var state = ICEState.new
    /// The path in use.
    public internal(set) var path: ICEPath?

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
    public var localCandidates: [Candidate] { locals.map(\.candidate) }

    /// Whether an answer with this transaction ID belongs to this agent. Used by drivers that share sockets among
    /// agents.
    public func isAwaiting(_ id: TransactionID) -> Bool {
        gathering.queries.contains { $0.id == id } || list.isAwaiting(id) || previous?.isAwaiting(id) ?? false
    }

    /// Whether checks to this user name fragment belong to this agent.
    public func answers(to usernameFragment: String) -> Bool {
        list.local.usernameFragment == usernameFragment || previous?.local.usernameFragment == usernameFragment
    }

    /// The statistics so far.
    public var statistics: ICEStatistics {
        var statistics = commons.statistics
        let pair = list.pair(list.selected) ?? previous.flatMap { $0.pair($0.selected) }
        statistics.path = path
        statistics.roundTrip = pair?.roundTrip
        statistics.smoothedRoundTrip = pair?.smoothedRoundTrip
        statistics.pairs = list.pairs.count
        return statistics
    }

    /// The earliest of all that is due.
    public var nextDeadline: Instant? {
        let relayDeadlines = relays.values.compactMap(\.client.nextDeadline)
        guard state != .closed else { return relayDeadlines.min() }
        let settings = commons.configuration
        let own = [
            gathering.nextDeadline, list.nextSend(settings), list.nextDecision(settings),
            previous?.nextSend(settings), previous?.nextDecision(settings), previousEnd, nextStateChange,
        ]
        return (own.compactMap(\.self) + relayDeadlines).min()
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
            if isLite, !commons.isControlling {
                // A lite peer never controls (RFC 8445 §6.1.1).
                commons.isControlling = true
                list.sortPairs(true)
            }
            list.setRemote(credentials, locals, &commons, at: now)
        case .remoteCandidate(let candidate): add(candidate, into: &outbox)
        case .remoteEndOfCandidates: list.remoteHasEnded = true
        case .datagram(let bytes, let local, let source):
            datagram(bytes, local: local, source: source, at: now, into: &outbox)
        case .serverOpened(let server): relay(server, .opened, at: now, into: &outbox)
        case .serverClosed(let server): serverClosed(server, into: &outbox)
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
            list.add(remote: candidate, locals, &commons)
            return
        }
        if list.takesName(of: candidate, &commons) { outbox.append(.unresolvedName(candidate)) }
    }

    private mutating func timerFired(at now: Instant, into outbox: inout [ICEOutput]) {
        for server in relays.keys.sorted() { relay(server, .timerFired, at: now, into: &outbox) }
        if let end = previousEnd, end <= now {
            previous = nil
            previousEnd = nil
        }
        guard let end = gathering.end, end <= now else { return }
        gathering.queries = []
        for server in relays.keys { relays[server]?.isGathering = false }
    }

    private mutating func datagram(
        _ bytes: [UInt8], local: SocketAddress, source: SocketAddress, at now: Instant,
        into outbox: inout [ICEOutput]
    ) {
        guard localAddresses.contains(local) else {
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
    mutating func take(_ message: STUNMessage, _ key: CandidatePair.Key, at now: Instant) {
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
            } else if previous?.isAwaiting(message.transactionID) == true {
                previous?.handle(response: message, key, &commons, at: now)
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
        let isPrevious = fragment != list.local.usernameFragment && fragment == previous?.local.usernameFragment
        let local = isPrevious ? previous?.local ?? list.local : list.local
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
        guard grants.take(at: now) else {
            commons.statistics.requestsOverLimit += 1
            return
        }
        if isPrevious {
            previous?.handle(request: request, key, peerFragment: names[1], locals, &commons, at: now)
        } else {
            list.handle(request: request, key, peerFragment: names[1], locals, &commons, at: now)
        }
    }

    private mutating func refuse(
        _ request: STUNMessage, _ code: STUNErrorCode, key: STUNKey?, to destination: CandidatePair.Key,
        at now: Instant
    ) {
        guard refusals.take(at: now) else {
            commons.statistics.requestsOverLimit += 1
            return
        }
        let bytes = STUNBuilder(refusing: request, code).finish(key: key, fingerprint: true)
        commons.send(bytes, from: destination.base, to: destination.remote)
    }
}
