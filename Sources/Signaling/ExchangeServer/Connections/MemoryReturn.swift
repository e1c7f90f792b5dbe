import Core

/// When to return free memory to the system: some time after many connections have closed.
///
/// The memory of thousands of closed connections is free, and the allocator keeps it if only a little memory behind it
/// is still in use. A check costs some milliseconds, so it runs seldom.
struct MemoryReturn: Hashable, Sendable {
    /// As many connections must have closed since the last time.
    static let closings = 1_000
    /// How long afterwards: those that came with the others are gone by then.
    static let delay = Duration.seconds(15)
    /// Growth of the process since the last time from which on it is worth it.
    static let worthwhileBytes = 32 << 20

    private var closed = 0
    /// When memory is to be returned.
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
