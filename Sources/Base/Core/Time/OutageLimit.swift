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
