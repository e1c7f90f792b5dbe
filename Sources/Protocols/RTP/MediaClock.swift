/// Conversions between time and ticks of an RTP clock that neither overflow nor drift over a long call.
enum MediaClock {
    /// Whole ticks in `nanoseconds`, rounded towards zero.
    @_noAllocation @_noLocks
    static func ticks(fromNanoseconds nanoseconds: Int64, clockRate: Int) -> Int64 {
        // Seconds and the rest apart: nanoseconds times 48 000 would leave 64 bits after 53 hours.
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* Int64(clockRate) &+ rest &* Int64(clockRate) / 1_000_000_000
    }
}
