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

/// Decides which failures of one outage deserve a warning: the first, and later ones at growing intervals.
public struct OutageLimit: Sendable {
    private let first: Duration
    private let longest: Duration
    private var pause: Duration
    private var last: Instant?
    private var leftOut = 0

    /// Waits at least `first` after the first warning, and then twice the last interval, up to `longest`.
    public init(first: Duration = .seconds(30), longest: Duration = .seconds(3_600)) {
        self.first = first
        self.longest = longest
        pause = first
    }

    /// Whether a failure deserves a warning.
    ///
    /// - Returns: How many failures were left out since the last warning; nil if this one is left out, too.
    public mutating func admit(at now: Instant) -> Int? {
        if let last {
            guard last.duration(to: now) >= pause else {
                leftOut += 1
                return nil
            }
            pause = min(longest, pause * 2)
        }
        last = now
        defer { leftOut = 0 }
        return leftOut
    }

    /// The outage ended: the next failure is the first of another one.
    public mutating func end() { self = OutageLimit(first: first, longest: longest) }
}
