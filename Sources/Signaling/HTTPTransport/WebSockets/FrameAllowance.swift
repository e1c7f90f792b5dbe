internal import Core

/// How many frames a peer may send: a burst, and a rate in the long run.
package struct FrameRate: Hashable, Sendable {
    let burst: Int
    let interval: Duration

    /// - Parameters:
    ///   - burst: Frames at once, at least 1.
    ///   - perSecond: Frames per second in the long run, at least 1.
    package init(burst: Int, perSecond: Int) {
        precondition(burst > 0 && perSecond > 0, "a frame rate is at least 1")
        self.burst = burst
        interval = .seconds(1) / perSecond
    }
}

/// The frames of one peer, held to a ``FrameRate``.
///
/// A leaky bucket, kept as the instant at which it will be empty (the generic cell rate algorithm of ITU-T I.371).
struct FrameAllowance: Sendable {
    private var emptyAt: Instant?

    /// Counts a frame; false if it exceeds the rate.
    mutating func take(_ rate: FrameRate, at now: Instant) -> Bool {
        let begin = max(emptyAt ?? now, now)
        let end = begin.advanced(by: rate.interval)
        guard now.duration(to: end) <= rate.interval * rate.burst else { return false }
        emptyAt = end
        return true
    }
}
