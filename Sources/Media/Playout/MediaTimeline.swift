/// The media times of a stream's packets, while its format changes.
struct MediaTimeline {
    private var clock: StreamClock
    /// The format that `clock` is of.
    private var format: UInt8
    /// Times packets of the format before that still come.
    private var formerClock: StreamClock?

    /// Begins with a stream in a format.
    @_noAllocation @_noLocks
    init(format: UInt8, samplesPerTick: Int64) {
        clock = StreamClock(samplesPerTick: samplesPerTick)
        self.format = format
    }

    /// Continues in another format, from a packet whose position in the stream is known.
    ///
    /// - Parameter time: The packet's media time in samples, and `timestamp` the one that it carries.
    @_noAllocation @_noLocks
    mutating func change(to format: UInt8, samplesPerTick: Int64, time: Int64, timestamp: UInt32) {
        formerClock = clock
        clock = StreamClock(samplesPerTick: samplesPerTick, time: time, timestamp: timestamp)
        self.format = format
    }

    /// Whether packets of a format are what times are counted by.
    @_noAllocation @_noLocks
    func isOf(_ format: UInt8) -> Bool { format == self.format }

    /// A packet's media time; nil if its format is known no more.
    @_noAllocation @_noLocks
    mutating func extend(_ timestamp: UInt32, of format: UInt8) -> Int64? {
        if format == self.format { return clock.extend(timestamp) }
        guard format == self.format &- 1, var former = formerClock else { return nil }
        let extended = former.extend(timestamp)
        formerClock = former
        return extended
    }

    /// The media time nearest to those seen before; nil before the first packet.
    @_noAllocation @_noLocks
    func time(of timestamp: UInt32) -> Int64? { clock.peek(timestamp) }

    @_noAllocation @_noLocks
    func samples(inTicks ticks: UInt32) -> Int64 { Int64(ticks) &* clock.samplesPerTick }
}
