internal import Core

/// Measures how fast the timestamps of a peer's packets advance by this machine's clock.
///
/// It begins again with another SSRC, another clock rate, and after a jump of more than half a minute.
public struct SenderClock: BitwiseCopyable, Sendable {
    /// Ticks a second that the codec's timestamps should advance by; 0 before the first packet.
    public private(set) var clockRateHz = 0
    /// Ticks from the first packet to the newest.
    public private(set) var ticks: Int64 = 0
    /// Nanoseconds between the arrivals of these two.
    public private(set) var spanNanoseconds: Int64 = 0
    private var ssrc: UInt32 = 0
    private var newestTimestamp: UInt32 = 0
    private var firstArrival = Instant.zero

    /// No packet has come.
    public init() {}

    /// The rate at which the timestamps advance, in Hz; nil before two packets that are a second apart. Its error is that of the arrival
    /// of two packets, which shrinks with the span.
    public var measuredRateHz: Double? {
        guard spanNanoseconds >= 1_000_000_000 else { return nil }
        return Double(ticks) / Double(spanNanoseconds) * 1e9
    }

    /// Takes a packet of sound.
    @_noAllocation @_noLocks
    mutating func take(ssrc: UInt32, timestamp: UInt32, clockRateHz: Int, at arrival: Instant) {
        guard self.clockRateHz == clockRateHz, self.ssrc == ssrc else {
            return begin(ssrc, timestamp, clockRateHz, at: arrival)
        }
        let advance = Int64(Int32(bitPattern: timestamp &- newestTimestamp))
        let limit = 30 &* Int64(clockRateHz)
        guard advance > 0 else {
            // One that was overtaken; or the sender has begun again, if it is far behind.
            if advance < -limit { begin(ssrc, timestamp, clockRateHz, at: arrival) }
            return
        }
        guard advance <= limit else { return begin(ssrc, timestamp, clockRateHz, at: arrival) }
        ticks &+= advance
        spanNanoseconds = firstArrival.nanoseconds(to: arrival)
        newestTimestamp = timestamp
    }

    @_noAllocation @_noLocks
    private mutating func begin(_ ssrc: UInt32, _ timestamp: UInt32, _ clockRateHz: Int, at arrival: Instant) {
        self.ssrc = ssrc
        self.clockRateHz = clockRateHz
        newestTimestamp = timestamp
        firstArrival = arrival
        ticks = 0
        spanNanoseconds = 0
    }
}
