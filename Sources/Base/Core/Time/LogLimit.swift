/// Admits this many lines per second, with bursts after a pause.
public struct LogLimit: Sendable {
    private let rate: TokenBucket.Rate
    private var bucket = TokenBucket()
    private var leftOut = 0

    /// Allows `burst` at once, and a sustained `perSecond`.
    public init(burst: Int = 50, perSecond: Double = 10) {
        rate = TokenBucket.Rate(burst: burst, perSecond: perSecond)
    }

    /// Whether one more may pass.
    ///
    /// - Returns: How many were left out since the last that did; nil if this one is left out, too.
    public mutating func admit(at now: Instant) -> Int? {
        guard bucket.take(rate, at: now) else {
            leftOut += 1
            return nil
        }
        defer { leftOut = 0 }
        return leftOut
    }
}
