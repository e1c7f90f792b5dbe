internal import Core

/// One generation's pairs and their checks (RFC 8445 §6.1.2), between one pair of credentials.
struct CheckList: Sendable {
    /// A check that came before the peer's credentials did.
    private struct EarlyCheck: Sendable {
        let key: CandidatePair.Key
        let priority: UInt32
        let nominates: Bool
        let peerFragment: String
    }

    private static let maximumEarlyChecks = 16
    /// If the selected pair is silent for longer, the other working pairs are checked at once.
    private static let closeLook = Duration.milliseconds(400)

    let local: ICECredentials
    private(set) var remote: ICECredentials?
    /// We find no further candidates. Set by the agent, which gathers.
    var gatheringHasEnded = false
    private var candidates = RemoteCandidates()
    private var earlyChecks: [EarlyCheck] = []
    private var sources = CheckedSources()
    private var unproven = UnprovenChecks()
    private var pairs = PairTable()
    private var queue: CheckQueue
    private var selection = PairSelection()
    private var patience = CheckPatience()
    /// The last time at which `settle` has decided.
    private(set) var decidedAt = Instant(nanoseconds: .min)

    init(local: ICECredentials, pacing: Duration) {
        self.local = local
        queue = CheckQueue(pacing: pacing)
    }

    // MARK: What has come of the checks

    /// The pair on which data is sent.
    var selected: CandidatePair.Key? { selection.selected }

    /// The pair on which data is sent, unless it was removed since the last decision.
    var selectedPair: CandidatePair? { pairs.pair(selection.selected) }

    /// The pair that both sides have selected.
    var nominated: CandidatePair.Key? { selection.nominated }

    /// The pairs that work, the best first.
    var validKeys: [CandidatePair.Key] { pairs.filter(\.isValid).map(\.key) }

    var pairCount: Int { pairs.count }

    /// Whether an authenticated check or answer of the peer came from this address.
    func hasPeer(at address: SocketAddress) -> Bool {
        sources.contains(address, fragment: remote?.usernameFragment)
    }

    /// Whether any pair has worked.
    var hasBeenValid: Bool { selection.hasBeenValid }

    /// Whether both sides have agreed on this pair, and nothing is left to check.
    func hasSettled(on key: CandidatePair.Key) -> Bool {
        selection.nominated == key && isComplete && !pairs.contains(where: \.isOpen)
    }

    /// Whether ICE has failed: no pair works or is being tried, and the time for it is up.
    func hasFailed(_ settings: ICEConfiguration, at now: Instant) -> Bool {
        selection.selected == nil && hasExpired(settings, at: now) && !pairs.contains(where: \.isOpen)
    }

    /// Neither side finds further candidates.
    private var isComplete: Bool { candidates.hasEnded && gatheringHasEnded }

    private func hasExpired(_ settings: ICEConfiguration, at now: Instant) -> Bool {
        guard selectedPair == nil, let end = patience.end(settings) else { return false }
        return now >= end
    }

    // MARK: Candidates of both sides

    mutating func setRemote(
        _ credentials: ICECredentials, isLite: Bool, _ locals: [LocalCandidate], _ commons: inout AgentCommons,
        at now: Instant
    ) {
        if isLite, !commons.isControlling {
            // A lite peer never controls (RFC 8445 §6.1.1).
            commons.isControlling = true
            pairs.sort(isControlling: true)
        }
        guard remote == nil else { return }
        remote = credentials
        patience.began(at: now)
        for stale in candidates.removeAll(except: credentials.usernameFragment, &commons.statistics) {
            pairs.remove(remote: stale.address)
        }
        let early = earlyChecks
        earlyChecks = []
        for check in early where check.peerFragment == credentials.usernameFragment {
            peerChecked(check.key, check.priority, nominates: check.nominates, locals, &commons, at: now)
        }
    }

    mutating func add(remote candidate: Candidate, _ locals: [LocalCandidate], _ commons: inout AgentCommons) {
        let addition = candidates.add(candidate, fragment: remote?.usernameFragment, &commons.statistics)
        guard let addition else { return }
        if addition == .signaled { pairs.replaceRemote(by: candidate) }
        for local in locals { addPair(local, candidate, &commons) }
        if addition == .signaled { pairs.sort(isControlling: commons.isControlling) }
    }

    /// Whether a candidate that has only a name is worth looking up.
    mutating func takesName(of candidate: Candidate, _ commons: inout AgentCommons) -> Bool {
        candidates.takesName(of: candidate, &commons.statistics)
    }

    /// The peer has no more candidates.
    mutating func endRemoteCandidates() { candidates.end() }

    mutating func add(local: LocalCandidate, _ commons: inout AgentCommons) {
        for candidate in candidates.all { addPair(local, candidate, &commons) }
    }

    /// A base is lost: nothing can be sent from it any more.
    mutating func remove(base: Base) {
        pairs.remove(base: base)
        queue.remove(base: base)
    }

    private mutating func addPair(_ local: LocalCandidate, _ candidate: Candidate, _ commons: inout AgentCommons) {
        let dropped = pairs.add(
            local, candidate, isControlling: commons.isControlling, keeping: selection.nominating)
        guard let dropped else { return }
        commons.statistics.pairsOverLimit += 1
        queue.remove(dropped)
    }

    // MARK: Relays

    /// The server's answer to the permission for a peer's address.
    mutating func permission(server: Int, peer: SocketAddress, isGranted: Bool) {
        for index in pairs.indices
        where pairs[index].key.base == .relay(server) && pairs[index].key.remote.withPort(0) == peer.withPort(0) {
            pairs[index].setPermitted(isGranted)
        }
    }

    /// Peers' addresses of the best four pairs through a server that work.
    func answering(server: Int) -> [SocketAddress] {
        pairs.lazy.filter { $0.isValid && $0.key.base == .relay(server) }.prefix(4).map(\.key.remote)
    }

    /// Peers that the server has yet to be asked about.
    func unpermitted(server: Int) -> [SocketAddress] {
        guard remote != nil else { return [] }
        return pairs.filter { $0.key.base == .relay(server) && !$0.isPermitted && $0.isOpen }.map(\.key.remote)
    }

    // MARK: Sending checks (RFC 8445 §6.1.4, §7.2.2)

    /// Sends the checks that are due: retransmissions first, then triggered checks, then ordinary checks.
    mutating func sendDueChecks(_ commons: inout AgentCommons, at now: Instant) {
        guard remote != nil else { return }
        var limited: [Int] = []
        for index in pairs.indices {
            pairs[index].expire(commons.configuration, at: now)
            guard let due = pairs[index].nextSend, due <= now else { continue }
            if isProven(pairs[index]) { sendCheck(index, &commons, at: now) } else { limited.append(index) }
        }
        // The one that was checked longest ago first, so that each has its turn when few checks may be sent.
        limited.sort { (pairs[$0].lastCheck ?? now) < (pairs[$1].lastCheck ?? now) }
        for index in limited where takeUnproven(index, at: now) { sendCheck(index, &commons, at: now) }
        while let index = queue.next(in: pairs, at: now) {
            let settings = commons.configuration
            // With many pairs at once the repeats, too, must not come faster than the pace (RFC 8445 §14.3).
            let busy = pairs.count { $0.isOpen }
            let interval = max(settings.retransmission, settings.pacing * busy)
            pairs[index].begin(interval: interval, end: now.advanced(by: settings.checkTimeout))
            if isProven(pairs[index]) || takeUnproven(index, at: now) {
                sendCheck(index, &commons, at: now)
            } else {
                pairs[index].planCheck(at: now)
            }
        }
    }

    /// Whether the peer was at this pair's remote host.
    private func isProven(_ pair: CandidatePair) -> Bool {
        pair.roundTrip != nil || sources.containsHost(of: pair.key.remote, fragment: remote?.usernameFragment)
    }

    /// Whether a check may be sent on a pair whose remote host is known from the peer's description alone, which then counts.
    private mutating func takeUnproven(_ index: Int, at now: Instant) -> Bool {
        guard pairs[index].lastCheck != nil else {
            unproven.noteFirst(checkSize)
            return true
        }
        return unproven.takeRepeat(checkSize, candidates: candidates.all.count, at: now)
    }

    /// Bytes of a check that does not nominate: the header, the user name and its padding, and the other attributes.
    private var checkSize: Int {
        let name = (remote?.usernameFragment.utf8.count ?? 0) + 1 + local.usernameFragment.utf8.count
        return 76 + (name + 3) / 4 * 4
    }

    /// Sends one check on a pair and plans the next.
    private mutating func sendCheck(_ index: Int, _ commons: inout AgentCommons, at now: Instant) {
        guard let remote else { return }
        let pair = pairs[index]
        // Repeated while the nomination is valid, so that a peer that has selected another pair learns of it.
        let nominates = commons.isControlling && (selection.nominating ?? selection.nominated) == pair.key
        let probe = CandidatePair.Probe(
            id: commons.transactionID(), sentAt: now, nominates: nominates, isControlling: commons.isControlling)
        var builder = STUNBuilder(.request, .binding, probe.id)
        builder.append(.username, "\(remote.usernameFragment):\(local.usernameFragment)")
        // As if the peer were to learn a new candidate of this base from it (RFC 8445 §7.1.1).
        builder.append(
            .priority, CandidateType.peerReflexive.preference << 24 | pair.localPriority & 0x00FF_FFFF)
        builder.append(commons.isControlling ? .iceControlling : .iceControlled, commons.tieBreaker)
        if nominates { builder.append(.useCandidate, []) }
        let bytes = builder.finish(key: STUNKey(shortTerm: remote.password), fingerprint: true)
        commons.send(bytes, from: pair.key.base, to: pair.key.remote)
        commons.statistics.checksSent += 1
        pairs[index].sent(probe, isNominating: selection.nominating == pair.key, commons.configuration)
    }

    /// Plans the next check of a pair that has just answered.
    private mutating func planLiveness(_ index: Int, _ commons: inout AgentCommons, at now: Instant) {
        let settings = commons.configuration
        let key = pairs[index].key
        if key == selection.nominating {
            // That was an answer to an earlier check; the one that nominates is repeated until it is answered, too.
            let next = pairs[index].nextSend ?? now
            pairs[index].planCheck(at: next)
        } else if key == selected {
            let hasBackup = pairs.contains { $0.isValid && $0.key != key && $0.unansweredSince == nil }
            let interval = hasBackup ? settings.livenessInterval : settings.consentInterval
            pairs[index].planCheck(at: now.advanced(by: commons.varied(interval)))
        } else {
            // The best few are kept alive, to change to. Any other is forgotten when its consent has run out.
            let rank = pairs[..<index].count { $0.isValid && $0.key != selected }
            let isKept = rank < 4
            pairs[index].planCheck(at: isKept ? now.advanced(by: commons.varied(settings.consentInterval)) : nil)
        }
    }

    /// When `sendDueChecks` has something to do.
    func nextSend(_ settings: ICEConfiguration) -> Instant? {
        guard remote != nil else { return nil }
        let nextUnproven = unproven.nextRepeat(checkSize, candidates: candidates.all.count)
        var times: [Instant] = pairs.compactMap { pair in
            guard let nextUnproven, !isProven(pair) else { return pair.nextCheck(settings, notBefore: nil) }
            return pair.nextCheck(settings, notBefore: nextUnproven)
        }
        if let turn = queue.nextDeadline(pairs) { times.append(turn) }
        return times.min()
    }

    // MARK: The peer's checks (RFC 8445 §7.3)

    /// Handles and answers a request whose protection with our password was verified.
    mutating func handle(
        request: STUNMessage, _ key: CandidatePair.Key, peerFragment: String, _ locals: [LocalCandidate],
        _ commons: inout AgentCommons, at now: Instant
    ) {
        let secret = STUNKey(shortTerm: local.password)
        guard resolveRoles(request, &commons) else {
            let refusal = STUNBuilder(refusing: request, .roleConflict)
            commons.send(refusal.finish(key: secret, fingerprint: true), from: key.base, to: key.remote)
            return
        }
        var answer = STUNBuilder(.success, answering: request)
        answer.append(.xorMappedAddress, key.remote)
        commons.send(answer.finish(key: secret, fingerprint: true), from: key.base, to: key.remote)
        commons.statistics.requestsGranted += 1

        let priority = request.uint32(.priority) ?? 0
        let nominates = request.contains(.useCandidate)
        if let remote {
            guard remote.usernameFragment == peerFragment else { return }
            sources.note(key.remote, fragment: peerFragment)
            peerChecked(key, priority, nominates: nominates, locals, &commons, at: now)
        } else {
            sources.note(key.remote, fragment: peerFragment)
            guard earlyChecks.count < Self.maximumEarlyChecks else { return }
            earlyChecks.append(
                EarlyCheck(key: key, priority: priority, nominates: nominates, peerFragment: peerFragment))
        }
    }

    /// Detects that both sides have the same role, and decides which one changes it (RFC 8445 §7.3.1.1).
    ///
    /// - Returns: false if the peer must change.
    private mutating func resolveRoles(_ request: STUNMessage, _ commons: inout AgentCommons) -> Bool {
        let rival = request.uint64(commons.isControlling ? .iceControlling : .iceControlled)
        guard let rival else { return true }
        // The greater number controls.
        let weShouldControl = commons.tieBreaker >= rival
        guard weShouldControl != commons.isControlling else { return false }
        changeRole(&commons)
        return true
    }

    /// The indices of pairs are others afterwards.
    private mutating func changeRole(_ commons: inout AgentCommons) {
        commons.isControlling.toggle()
        commons.statistics.roleChanges += 1
        selection.roleChanged()
        pairs.sort(isControlling: commons.isControlling)
    }

    /// The peer has checked this pair, so we check it, too (RFC 8445 §7.3.1.3, §7.3.1.4).
    private mutating func peerChecked(
        _ key: CandidatePair.Key, _ priority: UInt32, nominates: Bool, _ locals: [LocalCandidate],
        _ commons: inout AgentCommons, at now: Instant
    ) {
        if pairs.index(of: key) == nil {
            let here = locals.filter { $0.base == key.base }
            if let known = candidates.candidate(at: key.remote) {
                // Learned from a check to another local base.
                for local in here { addPair(local, known, &commons) }
            } else {
                let candidate = Candidate(
                    foundation: "prflx\(candidates.all.count)", priority: priority, address: key.remote,
                    type: .peerReflexive)
                add(remote: candidate, here, &commons)
            }
        }
        guard let index = pairs.index(of: key) else { return }
        let isNomination = nominates && !commons.isControlling
        pairs[index].peerChecked(nominates: isNomination, at: now)
        switch pairs[index].state {
        case .frozen, .waiting, .failed:
            pairs[index].awaitTurn()
            queue.trigger(key)
        case .inProgress: break
        case .succeeded:
            if isNomination { selection.peerNominated(pairs[index], among: pairs, at: now) }
            promptNomination(index, commons, at: now)
        }
    }

    /// Checks the best valid pair again, directly after our answer to the peer's check.
    ///
    /// Some controlling peers (Pion) nominate when a check reaches them on a pair that is valid for them, and otherwise
    /// only at their own ticks, 200 ms apart. All our first checks may have arrived before the pair was valid for them.
    private mutating func promptNomination(_ index: Int, _ commons: AgentCommons, at now: Instant) {
        guard !commons.isControlling, selection.nominated == nil, pairs.firstIndex(where: \.isValid) == index else {
            return
        }
        pairs[index].prompt(at: now)
    }

    // MARK: Answers to our checks (RFC 8445 §7.2.5)

    func isAwaiting(_ id: TransactionID) -> Bool { pairs.index(awaiting: id) != nil }

    /// Takes the answer to a check, if it is one.
    mutating func handle(
        response: STUNMessage, _ key: CandidatePair.Key, _ commons: inout AgentCommons, at now: Instant
    ) {
        guard let remote, let index = pairs.index(awaiting: response.transactionID),
            let probe = pairs[index].probe(response.transactionID)
        else { return }
        // Like a forged answer, a forged refusal must not end a check.
        guard response.integrity(STUNKey(shortTerm: remote.password)) == .valid, response.fingerprint != .invalid else {
            commons.statistics.responsesUnauthenticated += 1
            return
        }
        commons.statistics.checksAnswered += 1
        if response.messageClass == .failure {
            refused(index, probe, response.failure?.code, &commons)
            return
        }
        guard pairs[index].key == key, response.address(.xorMappedAddress) != nil else {
            // Answered by another address, or without a mandatory attribute: no path for data (RFC 8445 §7.2.5.2.1).
            if !pairs[index].isValid { pairs[index].fail() }
            return
        }
        sources.note(key.remote, fragment: remote.usernameFragment)
        let hasBeenValid = pairs[index].isValid
        pairs[index].succeed(probe, at: now)
        patience.answered(at: now)
        let nominates = probe.nominates && commons.isControlling && probe.isControlling
        selection.answered(key, nominates: nominates, at: now)
        // A pair that the peer nominated before it was valid.
        if !commons.isControlling, pairs[index].peerNominatedAt != nil, !hasBeenValid {
            selection.peerNominated(pairs[index], among: pairs, at: now)
        }
        planLiveness(index, &commons, at: now)
        if !hasBeenValid { promptNomination(index, commons, at: now) }
        pairs.thaw(pairs[index].foundation)
    }

    private mutating func refused(
        _ index: Int, _ probe: CandidatePair.Probe, _ code: STUNErrorCode?, _ commons: inout AgentCommons
    ) {
        pairs[index].refused(probe)
        let key = pairs[index].key
        switch code {
        case .roleConflict:
            if commons.isControlling == probe.isControlling { changeRole(&commons) }
            guard let current = pairs.index(of: key), !pairs[current].isValid else { return }
            pairs[current].awaitTurn()
            queue.trigger(key)
        default:
            // A valid pair is left to its consent.
            if !pairs[index].isValid { pairs[index].fail() }
        }
    }

    // MARK: The pair in use

    /// Decides on the pair in use. Called after every input, so that due timers are noticed.
    mutating func settle(_ commons: inout AgentCommons, at now: Instant) {
        decidedAt = now
        guard remote != nil else { return }
        let settings = commons.configuration
        noteSilence(settings, at: now)
        let before = selected
        selection.select(among: pairs, settings, at: now)
        if selected != before, let index = pairs.index(of: selected), pairs[index].unansweredSince == nil {
            planLiveness(index, &commons, at: now)
        }
        if commons.isControlling,
            let index = selection.nominate(among: pairs, isComplete: isComplete, settings, at: now)
        {
            sendCheck(index, &commons, at: now)
        }
        reviveIfNothingWorks(settings, at: now)
    }

    /// The media on the selected pair has stopped: does the pair still answer? The peer may merely have nothing to
    /// send.
    mutating func lookAtSelected(at now: Instant) {
        if let index = pairs.index(of: selected) { pairs[index].mediaStopped(at: now) }
    }

    private mutating func noteSilence(_ settings: ICEConfiguration, at now: Instant) {
        for index in pairs.indices { pairs[index].noteSilence(settings, at: now) }
        guard let present = selectedPair, present.isValid, let silentSince = present.unansweredSince else { return }
        let closeLook = present.isQuiet ? .zero : Self.closeLook
        guard present.silence(at: now) >= closeLook else { return }
        for index in pairs.indices where pairs[index].isValid && pairs[index].unansweredSince == nil {
            // Once for each silence.
            if let answer = pairs[index].lastAnswer, answer <= silentSince.advanced(by: closeLook) {
                pairs[index].planCheck(at: now)
            }
        }
    }

    private mutating func reviveIfNothingWorks(_ settings: ICEConfiguration, at now: Instant) {
        let isSilent = selectedPair.map { $0.silence(at: now) >= CheckPatience.revivalDelay } ?? true
        guard isSilent, !pairs.contains(where: \.isOpen), !hasExpired(settings, at: now), patience.takeRevival(at: now)
        else { return }
        pairs.revive()
    }

    /// When a decision may be due without a packet.
    func nextDecision(_ settings: ICEConfiguration) -> Instant? {
        var times = pairs.compactMap { $0.nextChange(settings) }
        if let present = selectedPair, present.isValid, let silentSince = present.unansweredSince {
            times.append(silentSince.advanced(by: Self.closeLook))
            times.append(silentSince.advanced(by: CheckPatience.revivalDelay))
        }
        times += [
            patience.end(settings), patience.nextRevival, selection.nextDeadline(pairs, settings),
        ].compactMap(\.self)
        return times.filter { $0 > decidedAt }.min()
    }
}

/// How long a check list tries, and how often it tries pairs again that have failed.
private struct CheckPatience: Sendable {
    /// If no other pair works, silence for this long makes failed pairs be tried again.
    static let revivalDelay = Duration.seconds(2)

    private var startedAt: Instant?
    private var lastAnswerAt: Instant?
    private var lastRevival: Instant?

    mutating func began(at now: Instant) { startedAt = now }

    mutating func answered(at now: Instant) { lastAnswerAt = now }

    /// When to give up: when the patience timer ends (RFC 8863) or, once a pair has worked, when the peer's consent
    /// expires.
    func end(_ settings: ICEConfiguration) -> Instant? {
        lastAnswerAt?.advanced(by: settings.consentTimeout) ?? startedAt?.advanced(by: settings.patience)
    }

    /// When failed pairs may be tried again; nil means at any time.
    var nextRevival: Instant? { lastRevival?.advanced(by: Self.revivalDelay) }

    /// Whether failed pairs may be tried again, which is then noted.
    mutating func takeRevival(at now: Instant) -> Bool {
        if let nextRevival, now < nextRevival { return false }
        lastRevival = now
        return true
    }
}

/// The addresses from which authenticated checks and answers came, each with the sender's user name fragment. At most 32: the
/// oldest is dropped first.
private struct CheckedSources: Sendable {
    private struct Source: Equatable, Sendable {
        let address: SocketAddress
        let fragment: String
    }

    private static let limit = 32

    private var all: [Source] = []

    /// Notes that an authenticated message of the agent with this fragment came from an address.
    mutating func note(_ address: SocketAddress, fragment: String) {
        let source = Source(address: address, fragment: fragment)
        guard !all.contains(source) else { return }
        if all.count == Self.limit { all.removeFirst() }
        all.append(source)
    }

    /// Whether the agent with this fragment, or with any if it is nil, was at an address.
    func contains(_ address: SocketAddress, fragment: String?) -> Bool {
        all.contains { $0.address == address && (fragment == nil || $0.fragment == fragment) }
    }

    /// Whether the agent with this fragment, or with any if it is nil, was at any port of an address's host.
    func containsHost(of address: SocketAddress, fragment: String?) -> Bool {
        let host = address.withPort(0)
        return all.contains { $0.address.withPort(0) == host && (fragment == nil || $0.fragment == fragment) }
    }
}
