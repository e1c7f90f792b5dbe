import Core

/// The last four sender reports sent, so that a peer's report can be matched to the time at which the one it names was sent.
struct SentReports: Sendable {
    private var middles = InlineArray<4, UInt32>(repeating: 0)
    private var times = InlineArray<4, Int64>(repeating: 0)
    private var next = 0
    /// One of our reports was sent.
    private(set) var hasAny = false

    @_noAllocation @_noLocks
    init() {}

    /// - Parameter middle: ``NTPTimestamp/middle`` of the moment of sending.
    @_noAllocation @_noLocks
    mutating func note(_ middle: UInt32, isSenderReport: Bool, at now: Instant) {
        hasAny = true
        guard isSenderReport else { return }
        middles[next] = middle
        times[next] = now.nanoseconds
        next = (next + 1) & 3
    }

    /// When the report with this nonzero `middle` was sent; `nil` if there was none, or it is too old.
    @_noAllocation @_noLocks
    func time(of middle: UInt32) -> Instant? {
        var index = 0
        while index < 4 {
            if middles[index] == middle { return Instant(nanoseconds: times[index]) }
            index += 1
        }
        return nil
    }
}
