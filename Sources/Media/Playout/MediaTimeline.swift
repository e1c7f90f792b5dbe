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

/// Extends the 32-bit timestamps of one RTP stream to 64 bits, as samples at 48 kHz.
struct StreamClock {
    private var last: Int64 = 0
    private var hasStarted = false
    /// The timestamp that counting began with, and the media time there, in samples.
    private var timestampOrigin: UInt32 = 0
    private var timeOrigin: Int64 = 0

    let samplesPerTick: Int64

    @_noAllocation @_noLocks
    init(samplesPerTick: Int64) { self.samplesPerTick = samplesPerTick }

    /// Continues with a stream of another clock rate, from a packet whose position is known.
    ///
    /// - Parameter time: The packet's media time in samples, and `timestamp` the one that it carries.
    @_noAllocation @_noLocks
    init(samplesPerTick: Int64, time: Int64, timestamp: UInt32) {
        self.samplesPerTick = samplesPerTick
        hasStarted = true
        timestampOrigin = timestamp
        timeOrigin = time
    }

    /// The media time nearest to those seen before. The first packet's is 0.
    @_noAllocation @_noLocks
    mutating func extend(_ timestamp: UInt32) -> Int64 {
        if !hasStarted {
            hasStarted = true
            timestampOrigin = timestamp
        }
        last &+= step(to: timestamp)
        return timeOrigin &+ last &* samplesPerTick
    }

    /// What ``extend(_:)`` would give, without moving there; nil before the first packet.
    @_noAllocation @_noLocks
    func peek(_ timestamp: UInt32) -> Int64? {
        guard hasStarted else { return nil }
        return timeOrigin &+ (last &+ step(to: timestamp)) &* samplesPerTick
    }

    @_noAllocation @_noLocks
    private func step(to timestamp: UInt32) -> Int64 {
        Int64(Int32(truncatingIfNeeded: Int64(timestamp &- timestampOrigin) &- last))
    }

    /// Media time in nanoseconds of `samples` at 48 kHz.
    @_noAllocation @_noLocks
    static func nanoseconds(samples: Int64) -> Int64 { samples &* 62_500 / 3 }

    /// Samples at 48 kHz in `nanoseconds`, rounded towards zero.
    @_noAllocation @_noLocks
    static func samples(nanoseconds: Int64) -> Int { Int(nanoseconds &* 3 / 62_500) }
}
