internal import Core

/// Counts a wire's faults, and reports when there are too many.
struct FaultLimiter: Sendable {
    private(set) var counts = WireCounts()
    private var tolerance = TokenBucket()
    private static let rate = TokenBucket.Rate(
        burst: WireLimits.faults, every: .nanoseconds(WireLimits.faultNanoseconds))

    mutating func countMessage() { counts.messages += 1 }
    mutating func countSound(_ bytes: Int) { counts.soundBytes += bytes }

    /// Counts that there were too many messages.
    mutating func countFlood() { counts.faults[.flood, default: 0] += 1 }

    /// Counts a fault.
    ///
    /// - Returns: Whether the wire may continue.
    mutating func count(_ fault: WireFault, at now: Instant) -> Bool {
        counts.faults[fault.kind, default: 0] += 1
        if tolerance.take(Self.rate, at: now) { return true }
        countFlood()
        return false
    }
}
