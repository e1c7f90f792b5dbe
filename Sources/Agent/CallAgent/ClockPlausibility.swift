public import CallControl
public import Core

/// Whether this machine's clock can be right. A board without a battery starts years in the past, and then no certificate is
/// valid.
public enum ClockPlausibility {
    /// This version was released after that: 2026-11-01. RELEASING.md says when it changes.
    private static let released = WallClock(unixMilliseconds: 1_793_491_200_000)
    /// The time after which this version is no longer in use.
    private static let lifetimeMilliseconds: Int64 = 10 * 365 * 86_400_000

    /// Whether it is `time` neither before this version's release nor years after it.
    public static func canBeRight(_ time: WallClock) -> Bool {
        time >= released && time.unixMilliseconds - released.unixMilliseconds < lifetimeMilliseconds
    }

    /// Whether a login that failed with this error at `time` is worth repeating when the time is another.
    public static func isReason(for error: SignalingError, at time: WallClock) -> Bool {
        error.code == .certificateNotTrusted && !canBeRight(time)
    }
}
