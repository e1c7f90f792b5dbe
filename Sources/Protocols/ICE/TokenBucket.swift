internal import Core

/// Allows a burst, and a sustained rate of one in each interval.
struct TokenBucket: Sendable {
    private let slack: Duration
    private let interval: Duration
    /// When the last taken token will have been refilled.
    private var settledAt = Instant(nanoseconds: .min / 2)

    init(capacity: Int, interval: Duration) {
        self.interval = interval
        slack = interval * (capacity - 1)
    }

    /// When a token can be taken again; in the past if one can be taken now.
    var nextAt: Instant { settledAt.advanced(by: .zero - slack) }

    /// Takes a token, if there is one.
    mutating func take(at now: Instant) -> Bool {
        guard now >= nextAt else { return false }
        settledAt = max(settledAt, now).advanced(by: interval)
        return true
    }
}
