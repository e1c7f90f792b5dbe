internal import Core

/// Limits the checks of one check list to hosts from which no authenticated check or answer has come.
///
/// A description may name the host of another person, who gets all of them. The first check of each pair is always sent, and
/// counts. Repeated checks are sent until all have ``burst`` bytes and ``perCandidate`` for each candidate, at most ``limit``;
/// after that they are sent at ``rate``. A candidate takes some 45 bytes of a description, so the host gets some six times the
/// bytes of the description at most, as it may get of sound.
struct UnprovenChecks: Sendable {
    /// A description with ICE and a long user name has some 1,000 bytes without candidates.
    private static let burst = 4_000
    private static let perCandidate = 300
    private static let limit = 16_000
    /// Time for each byte beyond the limit.
    private static let interval = Duration.milliseconds(5)
    /// The longest check, with two user names of 256 characters, has 592 bytes.
    private static let rate = TokenBucket.Rate(burst: 600, every: Self.interval)

    private var sent = 0
    private var pace = TokenBucket()

    /// Counts the first check of a pair.
    mutating func noteFirst(_ size: Int) { sent += size }

    /// Whether a repeated check of `size` bytes may be sent, which then counts.
    mutating func takeRepeat(_ size: Int, candidates: Int, at now: Instant) -> Bool {
        if fits(size, candidates) {
            sent += size
            return true
        }
        return pace.take(size, Self.rate, at: now)
    }

    /// When a repeated check may be sent; nil means at any time.
    func nextRepeat(_ size: Int, candidates: Int) -> Instant? {
        guard !fits(size, candidates) else { return nil }
        return pace.nextAt(Self.rate).advanced(by: Self.interval * (size - 1))
    }

    private func fits(_ size: Int, _ candidates: Int) -> Bool {
        sent + size <= min(Self.limit, Self.burst + Self.perCandidate * candidates)
    }
}
