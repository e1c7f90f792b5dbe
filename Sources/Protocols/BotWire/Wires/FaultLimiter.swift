internal import Core

/// Counts a wire's faults, and reports when there are too many.
struct FaultLimiter: Sendable {
    private(set) var counts = WireCounts()
    /// When all faults so far are forgiven.
    private var forgiven = Instant.zero

    mutating func countMessage() { counts.messages += 1 }
    mutating func countSound(_ bytes: Int) { counts.soundBytes += bytes }

    /// Counts that there were too many messages.
    mutating func countFlood() { counts.faults[.flood, default: 0] += 1 }

    /// Counts a fault.
    ///
    /// - Returns: Whether the wire may continue.
    mutating func count(_ fault: WireFault, at now: Instant) -> Bool {
        counts.faults[fault.kind, default: 0] += 1
        forgiven = max(forgiven, now).advanced(byNanoseconds: WireLimits.faultNanoseconds)
        guard now.nanoseconds(to: forgiven) > Int64(WireLimits.faults) * WireLimits.faultNanoseconds else {
            return true
        }
        countFlood()
        return false
    }
}
