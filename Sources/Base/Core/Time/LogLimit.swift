/// Admits this many lines per second, with bursts after a pause.
public struct LogLimit: Sendable {
    private let burst: Double
    private let perSecond: Double
    private var tokens: Double
    private var last: Instant?
    private var leftOut = 0

    /// Allows `burst` at once, and a sustained `perSecond`.
    public init(burst: Double = 50, perSecond: Double = 10) {
        self.burst = burst
        self.perSecond = perSecond
        tokens = burst
    }

    /// Whether one more may pass.
    ///
    /// - Returns: How many were left out since the last that did; nil if this one is left out, too.
    public mutating func admit(at now: Instant) -> Int? {
        if let last { tokens = min(burst, tokens + last.duration(to: now).seconds * perSecond) }
        last = now
        guard tokens >= 1 else {
            leftOut += 1
            return nil
        }
        tokens -= 1
        defer { leftOut = 0 }
        return leftOut
    }
}
