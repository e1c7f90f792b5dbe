internal import Core

/// The pairs of a check list: the best first, and each base and address of the peer once (RFC 8445 §6.1.2).
///
/// Of the pairs with one foundation, those that are added while the first is being checked are frozen until one works
/// (RFC 8838 §12). There are at most ``ICEConfiguration/maximumPairs``.
struct PairTable: RandomAccessCollection, Sendable {
    private var pairs: [CandidatePair] = []

    var startIndex: Int { pairs.startIndex }
    var endIndex: Int { pairs.endIndex }

    /// A pair, to be read or changed in place. Its index is valid until a pair is added or removed, or the role changes.
    subscript(index: Int) -> CandidatePair {
        get { pairs[index] }
        _modify { yield &pairs[index] }
    }

    func index(of key: CandidatePair.Key?) -> Int? { key.flatMap { key in pairs.firstIndex { $0.key == key } } }

    func pair(_ key: CandidatePair.Key?) -> CandidatePair? { index(of: key).map { pairs[$0] } }

    /// The pair that a check with this transaction ID was sent on.
    func index(awaiting id: TransactionID) -> Int? { pairs.firstIndex { $0.probe(id) != nil } }

    /// The best pair that waits; else the best frozen one, preferably of a foundation that is not being checked.
    var nextInTurn: Int? {
        if let waiting = pairs.firstIndex(where: { $0.state == .waiting && $0.isPermitted }) { return waiting }
        guard pairs.contains(where: { $0.state == .frozen }) else { return nil }
        let busy = Set(pairs.filter(\.isInProgress).map(\.foundation))
        return pairs.firstIndex { $0.state == .frozen && $0.isPermitted && !busy.contains($0.foundation) }
    }

    /// Adds the pair of two candidates, if one can reach the other and the pair is new.
    ///
    /// - Returns: The pair that is dropped for it, because there are too many: the worst that is neither valid nor
    ///   `kept`, which may be the new one.
    mutating func add(
        _ local: LocalCandidate, _ candidate: Candidate, isControlling: Bool, keeping kept: CandidatePair.Key?
    ) -> CandidatePair.Key? {
        guard local.isPaired, let from = local.candidate.address, let remote = candidate.address,
            from.isIPv6 == remote.isIPv6, from.isLinkLocalIPv6 == remote.isLinkLocalIPv6
        else { return nil }
        let key = CandidatePair.Key(base: local.base, remote: remote)
        guard index(of: key) == nil else { return nil }
        var pair = CandidatePair(key: key, local: local.candidate, remote: candidate)
        let kin = pairs.filter { $0.foundation == pair.foundation }
        if kin.contains(where: \.isOpen), !kin.contains(where: \.isValid) { pair.freeze() }
        pairs.append(pair)
        sort(isControlling: isControlling)
        guard pairs.count > ICEConfiguration.maximumPairs else { return nil }
        let spare = pairs.lastIndex { !$0.isValid && $0.key != kept } ?? pairs.count - 1
        return pairs.remove(at: spare).key
    }

    /// The peer has signaled a candidate whose address was learned from a check.
    mutating func replaceRemote(by candidate: Candidate) {
        for index in pairs.indices where pairs[index].key.remote == candidate.address {
            pairs[index].replaceRemote(by: candidate)
        }
    }

    mutating func remove(remote address: SocketAddress?) { pairs.removeAll { $0.key.remote == address } }

    mutating func remove(base: Base) { pairs.removeAll { $0.key.base == base } }

    /// Orders the pairs by the priorities that they have in this role.
    mutating func sort(isControlling: Bool) {
        for index in pairs.indices { pairs[index].computePriority(isControlling: isControlling) }
        pairs.sort { $0.priority > $1.priority }
    }

    /// A pair of this foundation works: those that waited for it are checked, too.
    mutating func thaw(_ foundation: String) {
        for index in pairs.indices where pairs[index].state == .frozen && pairs[index].foundation == foundation {
            pairs[index].awaitTurn()
        }
    }

    /// Retries failed pairs: the network may have changed, or the peer's packets have opened a path.
    mutating func revive() {
        for index in pairs.indices where pairs[index].state == .failed { pairs[index].awaitTurn() }
    }
}

/// Which pair's turn is next, and when: pairs that the peer has checked come before the others, and each of the two kinds
/// has its pace (RFC 8445 §6.1.4).
struct CheckQueue: Sendable {
    private var triggered: [CandidatePair.Key] = []
    private let ordinaryRate: TokenBucket.Rate
    private var ordinaryPace = TokenBucket()
    private let triggeredRate: TokenBucket.Rate
    private var triggeredPace = TokenBucket()

    init(pacing: Duration) {
        let pace = max(pacing, .milliseconds(5))
        ordinaryRate = TokenBucket.Rate(burst: 1, every: pace)
        triggeredRate = TokenBucket.Rate(burst: 5, every: pace)
    }

    mutating func trigger(_ key: CandidatePair.Key) {
        if !triggered.contains(key) { triggered.append(key) }
    }

    mutating func remove(_ key: CandidatePair.Key) { triggered.removeAll { $0 == key } }

    mutating func remove(base: Base) { triggered.removeAll { $0.base == base } }

    /// The pair whose turn has come, if the pace permits one.
    mutating func next(in pairs: PairTable, at now: Instant) -> Int? {
        while let key = triggered.first {
            guard let index = pairs.index(of: key), pairs[index].isOpen, pairs[index].isPermitted else {
                triggered.removeFirst()
                continue
            }
            guard triggeredPace.take(triggeredRate, at: now) else { break }
            triggered.removeFirst()
            return index
        }
        guard let index = pairs.nextInTurn, ordinaryPace.take(ordinaryRate, at: now) else { return nil }
        return index
    }

    /// When a pair's turn comes.
    func nextDeadline(_ pairs: PairTable) -> Instant? {
        let times = [
            triggered.isEmpty ? nil : triggeredPace.nextAt(triggeredRate),
            pairs.nextInTurn == nil ? nil : ordinaryPace.nextAt(ordinaryRate),
        ]
        return times.compactMap(\.self).min()
    }
}
