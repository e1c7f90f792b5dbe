import Core

/// Something that happens again and again, of which the log tells twice: when it begins, and when it has not happened
/// for ``calm``.
struct Episode: Hashable, Sendable {
    /// How long it must not happen until it is over.
    static let calm = Duration.seconds(30)

    /// How often it has happened since it began.
    private(set) var count = 0
    private var last: Instant?

    /// When ``end(at:)`` must be called; `nil` while nothing goes on.
    var nextDeadline: Instant? { last?.advanced(by: Self.calm) }

    /// It happens; true if that is the first time.
    mutating func happen(at now: Instant) -> Bool {
        defer { last = now }
        count += 1
        return last == nil
    }

    /// How often it has happened, if it is over by now.
    mutating func end(at now: Instant) -> Int? {
        guard let due = nextDeadline, now >= due else { return nil }
        defer { self = Episode() }
        return count
    }
}
