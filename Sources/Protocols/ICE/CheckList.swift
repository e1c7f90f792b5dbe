internal import Core

/// One generation's pairs and their checks (RFC 8445 §6.1.2), between one pair of credentials.
struct CheckList: Sendable {
    /// A check that came before the peer's credentials did.
    struct EarlyCheck: Sendable {
        let key: CandidatePair.Key
        let priority: UInt32
        let nominates: Bool
        let peerFragment: String
    }

    static let maximumEarlyChecks = 16

    let local: ICECredentials
    var remote: ICECredentials?
    var remoteCandidates: [Candidate] = []
    /// Names that were reported for resolution.
    private var names: [Candidate] = []
    var remoteHasEnded = false
    var gatheringHasEnded = false
    /// The best first.
    var pairs: [CandidatePair] = []
    var triggered: [CandidatePair.Key] = []
    var earlyChecks: [EarlyCheck] = []
    /// The pair on which data is sent.
    var selected: CandidatePair.Key?
    /// The pair that both sides have selected.
    var nominated: CandidatePair.Key?
    /// The pair that we are nominating.
    var nominating: CandidatePair.Key?
    var startedAt: Instant?
    var firstValidAt: Instant?
    var lastAnswerAt: Instant?
    var lastRevival: Instant?
    var ordinaryPace: TokenBucket
    var triggeredPace: TokenBucket
    /// The last time at which `settle` has decided.
    var decidedAt = Instant(nanoseconds: .min)

    init(local: ICECredentials, pacing: Duration) {
        self.local = local
        let pace = max(pacing, .milliseconds(5))
        ordinaryPace = TokenBucket(capacity: 1, interval: pace)
        triggeredPace = TokenBucket(capacity: 5, interval: pace)
    }

    func index(of key: CandidatePair.Key?) -> Int? { key.flatMap { key in pairs.firstIndex { $0.key == key } } }

    func pair(_ key: CandidatePair.Key?) -> CandidatePair? { index(of: key).map { pairs[$0] } }

    // MARK: Candidates of both sides

    mutating func setRemote(
        _ credentials: ICECredentials, _ locals: [LocalCandidate], _ commons: inout AgentCommons, at now: Instant
    ) {
        guard remote == nil else { return }
        remote = credentials
        startedAt = now
        let fragment = credentials.usernameFragment
        let stale = remoteCandidates.filter { $0.usernameFragment.map { $0 != fragment } ?? false }
        for candidate in stale { remove(candidate, &commons) }
        let early = earlyChecks
        earlyChecks = []
        for check in early where check.peerFragment == fragment {
            peerChecked(check.key, check.priority, nominates: check.nominates, locals, &commons, at: now)
        }
    }

    private mutating func remove(_ candidate: Candidate, _ commons: inout AgentCommons) {
        commons.statistics.candidatesIgnored += 1
        remoteCandidates.removeAll { $0 == candidate }
        pairs.removeAll { $0.key.remote == candidate.address }
    }

    mutating func add(remote candidate: Candidate, _ locals: [LocalCandidate], _ commons: inout AgentCommons) {
        guard let address = candidate.address, !address.isUnusableAsPeer, candidate.component == 1,
            candidate.transport == "udp",
            isAwaited(candidate) || !remoteHasEnded || candidate.type == .peerReflexive
        else {
            commons.statistics.candidatesIgnored += 1
            return
        }
        if let fragment = candidate.usernameFragment, let remote, fragment != remote.usernameFragment {
            commons.statistics.candidatesIgnored += 1
            return
        }
        if let known = remoteCandidates.firstIndex(where: { $0.address == address }) {
            // A candidate that was learned from a check is now signaled: the signaled candidate replaces it, for all
            // bases.
            guard remoteCandidates[known].type == .peerReflexive, candidate.type != .peerReflexive else { return }
            remoteCandidates[known] = candidate
            for index in pairs.indices where pairs[index].key.remote == address {
                pairs[index].remoteType = candidate.type
                pairs[index].remotePriority = candidate.priority
            }
            for local in locals { addPair(local, candidate, &commons) }
            sortPairs(commons.isControlling)
            return
        }
        guard remoteCandidates.count < ICEConfiguration.maximumRemoteCandidates else {
            commons.statistics.candidatesOverLimit += 1
            return
        }
        remoteCandidates.append(candidate)
        for local in locals { addPair(local, candidate, &commons) }
    }

    /// Whether a candidate that has only a name is worth looking up. A flood of names stops at the limit, too.
    mutating func takesName(of candidate: Candidate, _ commons: inout AgentCommons) -> Bool {
        guard candidate.component == 1, candidate.transport == "udp", !remoteHasEnded else {
            commons.statistics.candidatesIgnored += 1
            return false
        }
        guard names.count < ICEConfiguration.maximumRemoteCandidates else {
            commons.statistics.candidatesOverLimit += 1
            return false
        }
        names.append(candidate)
        return true
    }

    /// Whether a candidate was signaled in time by name, and is now resolved.
    private func isAwaited(_ candidate: Candidate) -> Bool {
        guard let address = candidate.address else { return false }
        return names.contains { $0.resolved(to: address) == candidate }
    }

    mutating func add(local: LocalCandidate, _ commons: inout AgentCommons) {
        for candidate in remoteCandidates { addPair(local, candidate, &commons) }
    }

    /// A base is lost: nothing can be sent from it any more.
    mutating func remove(base: Base) {
        pairs.removeAll { $0.key.base == base }
        triggered.removeAll { $0.base == base }
    }

    mutating func addPair(_ local: LocalCandidate, _ candidate: Candidate, _ commons: inout AgentCommons) {
        guard local.isPaired, let from = local.candidate.address, let remote = candidate.address,
            from.isIPv6 == remote.isIPv6, from.isLinkLocalIPv6 == remote.isLinkLocalIPv6
        else { return }
        let key = CandidatePair.Key(base: local.base, remote: remote)
        guard index(of: key) == nil else { return }
        var pair = CandidatePair(key: key, local: local.candidate, remote: candidate)
        // RFC 8838 §12: frozen while the first of its foundation is being checked.
        let kin = pairs.filter { $0.foundation == pair.foundation }
        pair.state = kin.contains { $0.isOpen } && !kin.contains { $0.isValid } ? .frozen : .waiting
        pairs.append(pair)
        sortPairs(commons.isControlling)
        guard pairs.count > ICEConfiguration.maximumPairs else { return }
        commons.statistics.pairsOverLimit += 1
        let spare = pairs.lastIndex { !$0.isValid && $0.key != nominating } ?? pairs.count - 1
        let dropped = pairs.remove(at: spare).key
        triggered.removeAll { $0 == dropped }
    }

    mutating func sortPairs(_ isControlling: Bool) {
        for index in pairs.indices { pairs[index].computePriority(isControlling: isControlling) }
        pairs.sort { $0.priority > $1.priority }
    }

    mutating func roleChanged(_ commons: inout AgentCommons) {
        commons.statistics.roleChanges += 1
        nominating = nil
        sortPairs(commons.isControlling)
    }

    // MARK: Relays

    /// The server's answer to the permission for a peer's address.
    mutating func permission(server: Int, peer: SocketAddress, isGranted: Bool) {
        for index in pairs.indices
        where pairs[index].key.base == .relay(server) && pairs[index].key.remote.withPort(0) == peer.withPort(0) {
            pairs[index].isPermitted = isGranted
            if !isGranted, pairs[index].isOpen { pairs[index].fail() }
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
}
