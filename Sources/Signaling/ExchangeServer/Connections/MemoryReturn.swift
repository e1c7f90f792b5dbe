import Core

/// When memory is given back to the machine: a while after many connections have closed.
///
/// What thousands of connections held is free then, and the allocator keeps it: a little that is still in use behind it
/// is enough. To look costs some milliseconds, so it is done seldom.
struct MemoryReturn: Hashable, Sendable {
    /// As many connections must have closed since the last time.
    static let closings = 1_000
    /// How long afterwards: those that came with the others are gone by then.
    static let delay = Duration.seconds(15)
    /// Growth of the process since the last time from which on it is worth it.
    static let worthwhileBytes = 32 << 20

    private var closed = 0
    /// When memory is to be given back.
    private(set) var nextDeadline: Instant?

    /// A connection has closed.
    mutating func closed(at now: Instant) {
        closed += 1
        if closed >= Self.closings, nextDeadline == nil { nextDeadline = now.advanced(by: Self.delay) }
    }

    /// Whether it is time; resets the count if so.
    mutating func take(at now: Instant) -> Bool {
        guard let due = nextDeadline, now >= due else { return false }
        self = MemoryReturn()
        return true
    }
}
