import Core

/// A recurring condition that is logged twice: when it begins, and when it has not recurred for ``calm``.
struct Episode: Hashable, Sendable {
    /// Time without a recurrence after which it has ended.
    static let calm = Duration.seconds(30)

    /// How often it has happened since it began.
    private(set) var count = 0
    private var last: Instant?

    /// When ``end(at:)`` must be called; `nil` outside an episode.
    var nextDeadline: Instant? { last?.advanced(by: Self.calm) }

    /// It happens; true if that is the first time.
    mutating func happen(at now: Instant) -> Bool {
        defer { last = now }
        count += 1
        return last == nil
    }

    /// The number of occurrences, if the episode has ended.
    mutating func end(at now: Instant) -> Int? {
        guard let due = nextDeadline, now >= due else { return nil }
        defer { self = Episode() }
        return count
    }
}
