public import Core

/// Aligns a worker's frames to just after the period boundaries of the capturing card, so that samples are
/// taken as soon as they are available, although the card has its own clock.
///
/// It follows a clock: each frame reports its deviation, and gets the correction for the following ones. A very late
/// boundary moves them no further than a slightly late one.
public struct PeriodTracker: BitwiseCopyable, Sendable {
    private let frameNanoseconds: Int64
    /// The target time of a frame after a boundary, in nanoseconds: it increases after frames that came too early for their
    /// samples, and slowly decreases again.
    private var wanted = PeriodTracker.leastWait
    /// The error of late, smoothed, in nanoseconds.
    private var error: Int64 = 0
    /// How far from that frames are one by one, smoothed, in nanoseconds.
    private var spread: Int64 = 0
    /// Frames in a row with a small error.
    private var steadyFrames = 0
    private var lastChange = Instant(nanoseconds: 0)

    /// - Parameter frameNanoseconds: The worker's frames, in nanoseconds.
    public init(frameNanoseconds: Int64) { self.frameNanoseconds = frameNanoseconds }

    /// 1.5 ms, which is more than a thread with priority comes late.
    private static var leastWait: Int64 { @_noAllocation @_noLocks get { 1_500_000 } }
    /// The most that one frame is moved, in millionths of its length: more than clocks differ by.
    private static var mostShift: Int64 { @_noAllocation @_noLocks get { 2_500 } }
    /// The same of frames that are beyond ``reach``: so slowly that the card's delay follows unheard.
    private static var approach: Int64 { @_noAllocation @_noLocks get { 300 } }
    /// A card whose boundaries are less regular than this is not followed: 0.8 ms on average.
    private static var mostSpread: Int64 { @_noAllocation @_noLocks get { 800_000 } }
    /// Frames within 1.25 ms of their target are kept there.
    private static var reach: Int64 { @_noAllocation @_noLocks get { 1_250_000 } }
    /// Frames with a small error until the card may count on them.
    private static var framesToTrust: Int { @_noAllocation @_noLocks get { 30 } }

    /// How long after boundaries frames come, in nanoseconds, for ``SoundLine/capture(into:at:afterBoundary:)``; nil while they
    /// come at any time.
    public var wait: Int64? {
        @_noAllocation @_noLocks get {
            steadyFrames >= Self.framesToTrust ? wanted &+ max(0, error) : nil
        }
    }

    /// The first instant that is not before `earliest` and is at the target time after a boundary; `earliest` if the card
    /// has no regular boundary.
    @_noAllocation @_noLocks
    public func aligned(_ earliest: Instant, to boundary: PeriodBoundary?) -> Instant {
        guard let boundary, canFollow(boundary, at: earliest) else { return earliest }
        let first = boundary.nanoseconds &+ min(wanted, boundary.periodNanoseconds / 2)
        let rest = (earliest.nanoseconds &- first) % boundary.periodNanoseconds
        guard rest != 0 else { return earliest }
        return earliest.advanced(byNanoseconds: rest < 0 ? -rest : boundary.periodNanoseconds &- rest)
    }

    /// Learns from a frame.
    ///
    /// - Parameters:
    ///   - due: When it was due.
    ///   - boundary: The card's last boundary.
    ///   - lacked: Whether samples were missing in it.
    ///   - mayJump: Whether frames may move by half a period at once.
    /// - Returns: How much later, in nanoseconds, all that follow are to come.
    @_noAllocation @_noLocks
    public mutating func follow(_ due: Instant, _ boundary: PeriodBoundary?, lacked: Bool, mayJump: Bool) -> Int64 {
        guard let boundary, canFollow(boundary, at: due) else {
            steadyFrames = 0
            (error, spread) = (0, 0)
            return 0
        }
        adapt(lacked: lacked && steadyFrames >= Self.framesToTrust, boundary.periodNanoseconds, at: due)
        let period = boundary.periodNanoseconds
        // Of boundaries that are a whole number of periods apart, any will do.
        var distance = (due.nanoseconds &- boundary.nanoseconds &- min(wanted, period / 2)) % period
        if distance > period / 2 { distance &-= period }
        if distance < -period / 2 { distance &+= period }
        let isFar = abs(distance) > Self.reach
        if isFar, mayJump {
            (error, spread, steadyFrames) = (0, 0, 0)
            return -distance
        }
        error &+= (Self.limited(distance, to: 2 &* Self.reach) &- error) / 16
        spread &+= (abs(distance &- error) &- spread) / 16
        let isSteady = abs(error) < Self.reach && spread < Self.mostSpread
        steadyFrames = isSteady ? min(steadyFrames &+ 1, Self.framesToTrust) : 0
        return Self.limited(
            -distance / 16, to: frameNanoseconds / 1_000_000 &* (isFar ? Self.approach : Self.mostShift))
    }

    @_noAllocation @_noLocks
    private static func limited(_ value: Int64, to limit: Int64) -> Int64 { min(max(value, -limit), limit) }

    /// A millisecond more when it was too little, and one less for each good minute.
    @_noAllocation @_noLocks
    private mutating func adapt(lacked: Bool, _ period: Int64, at now: Instant) {
        let since = lastChange.nanoseconds(to: now)
        if lacked, since > 1_000_000_000, wanted &+ 1_000_000 < period / 2 {
            wanted &+= 1_000_000
            lastChange = now
        } else if wanted > Self.leastWait, since > 60_000_000_000 {
            wanted &-= 1_000_000
            lastChange = now
        }
    }

    /// Whether frames have a constant distance from the card's boundaries, and the last boundary is recent.
    @_noAllocation @_noLocks
    private func canFollow(_ boundary: PeriodBoundary, at due: Instant) -> Bool {
        let period = boundary.periodNanoseconds
        return period >= 4_000_000 && frameNanoseconds % period < 1_000
            && abs(due.nanoseconds &- boundary.nanoseconds) < 4 &* frameNanoseconds
    }
}
