internal import Core

/// Reports the first of many equal events at once, and the others as a number, at most every ten seconds.
struct EventLimiter: BitwiseCopyable, Sendable {
    private var untold = 0
    private var quietUntil: Instant?

    private static let interval = Duration.seconds(10)

    /// When ``takeDue(at:)`` will return events.
    var deadline: Instant? { untold > 0 ? quietUntil : nil }

    /// Counts one event.
    ///
    /// - Returns: How many are to be reported now; nil for none.
    mutating func count(at now: Instant) -> Int? {
        untold += 1
        if let quietUntil, now < quietUntil { return nil }
        return take(at: now)
    }

    /// How many are due to be reported now; nil for none.
    mutating func takeDue(at now: Instant) -> Int? {
        guard let deadline, now >= deadline else { return nil }
        return take(at: now)
    }

    private mutating func take(at now: Instant) -> Int? {
        defer { untold = 0 }
        quietUntil = now.advanced(by: Self.interval)
        return untold
    }
}
