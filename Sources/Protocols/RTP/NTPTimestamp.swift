/// A time of day as RTCP carries it: seconds since 1900 in the upper 32 bits, fractions of 2⁻³² s in the lower.
@frozen
public struct NTPTimestamp: Equatable, Hashable, Sendable {
    /// All 64 bits.
    public var rawValue: UInt64

    /// Takes the bits of a packet.
    @_noAllocation @_noLocks
    @inlinable
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Converts a time of day; it wraps in 2036, as the format does.
    ///
    /// - Parameter unixNanoseconds: Nanoseconds since 1970-01-01 00:00 UTC, not negative.
    @_noAllocation @_noLocks
    public init(unixNanoseconds: Int64) {
        let nanoseconds = UInt64(max(0, unixNanoseconds))
        let seconds = nanoseconds / 1_000_000_000 &+ 2_208_988_800
        let fraction = (nanoseconds % 1_000_000_000) << 32 / 1_000_000_000
        rawValue = seconds << 32 | fraction
    }

    /// The middle 32 bits, in units of 1/65536 s: what report blocks send back (RFC 3550 §6.4.1, LSR).
    public var middle: UInt32 {
        @_noAllocation @_noLocks get { UInt32(truncatingIfNeeded: rawValue >> 16) }
    }
}

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
