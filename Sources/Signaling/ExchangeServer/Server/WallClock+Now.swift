internal import Glibc
import Core

extension WallClock {
    /// The time of day now.
    static var now: WallClock {
        var time = timespec()
        // Writes one timespec; it cannot fail for this clock.
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return WallClock(unixMilliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// Seconds since 1970.
    var seconds: Double { Double(unixMilliseconds) / 1_000 }
}
