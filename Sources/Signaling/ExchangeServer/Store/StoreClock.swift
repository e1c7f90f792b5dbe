internal import Realtime
internal import ExchangeCore
public import Core

/// The clocks that a store goes by; tests give it others.
public struct StoreClock: Sendable {
    /// The clock of the exchange's instants.
    public var instant: @Sendable () -> Instant
    /// The time of day.
    public var timeOfDay: @Sendable () -> WallClock
    /// Names the machine's current boot; instants of one boot can be compared.
    public var boot: String

    /// Makes clocks.
    public init(
        instant: @escaping @Sendable () -> Instant, timeOfDay: @escaping @Sendable () -> WallClock, boot: String
    ) {
        self.instant = instant
        self.timeOfDay = timeOfDay
        self.boot = boot
    }

    /// The machine's own clocks.
    public static var system: StoreClock {
        StoreClock(
            instant: { MonotonicClock.now }, timeOfDay: { MonotonicClock.wallTime }, boot: currentBoot())
    }

    /// Empty where the system does not say; then no two runs are taken to be of one boot.
    private static func currentBoot() -> String {
        (KernelFile.text(of: "/proc/sys/kernel/random/boot_id") ?? "").filter { $0 > " " }
    }

    /// By how much the time of day is ahead of the instants' origin now, in milliseconds.
    var offset: Int64 { timeOfDay().unixMilliseconds - instant().nanoseconds / 1_000_000 }
}

/// Instants to times of day and back.
struct TimeMap: Sendable {
    /// By how much the time of day is ahead of the instants' origin, in milliseconds.
    var offset: Int64

    func milliseconds(_ instant: Instant) -> Int64 { instant.nanoseconds / 1_000_000 + offset }
    func milliseconds(_ instant: Instant?) -> Int64? { instant.map { milliseconds($0) } }

    /// Extreme times, of a damaged or manipulated file, are clamped to the range that an instant can represent.
    func instant(_ milliseconds: Int64) -> Instant {
        let (difference, isTooFar) = milliseconds.subtractingReportingOverflow(offset)
        let limit: Int64 = 1 << 42
        let bounded = isTooFar ? (milliseconds > 0 ? limit : -limit) : min(max(difference, -limit), limit)
        return Instant(nanoseconds: bounded * 1_000_000)
    }
    func instant(_ milliseconds: Int64?) -> Instant? { milliseconds.map { instant($0) } }
}
