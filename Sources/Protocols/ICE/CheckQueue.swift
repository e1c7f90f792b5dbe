internal import Core

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
