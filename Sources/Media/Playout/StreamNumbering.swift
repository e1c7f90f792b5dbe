/// The extended numbers and media times of a stream's packets, while its format changes.
struct StreamNumbering {
    private var clock: StreamClock
    /// The format that `clock` is of.
    private var format: UInt8
    /// Counts packets of the format before that still come.
    private var formerClock: StreamClock?

    /// Begins with a stream in a format.
    @_noAllocation @_noLocks
    init(format: UInt8, samplesPerTick: Int64) {
        clock = StreamClock(samplesPerTick: samplesPerTick)
        self.format = format
    }

    /// Goes on in another format, from a packet whose place in the stream is known.
    ///
    /// - Parameters:
    ///   - number: The packet's extended number, and `sequenceNumber` the one that it bears.
    ///   - time: Its media time in samples, and `timestamp` what it bears.
    @_noAllocation @_noLocks
    mutating func change(
        to format: UInt8, samplesPerTick: Int64, number: Int64, sequenceNumber: UInt16, time: Int64, timestamp: UInt32
    ) {
        formerClock = clock
        clock = StreamClock(
            samplesPerTick: samplesPerTick, sequence: number, sequenceNumber: sequenceNumber, time: time,
            timestamp: timestamp)
        self.format = format
    }

    /// Whether packets of a format are what numbers and times are counted by.
    @_noAllocation @_noLocks
    func isOf(_ format: UInt8) -> Bool { format == self.format }

    /// A packet's number and media time; nil if its format is known no more.
    @_noAllocation @_noLocks
    mutating func extend(
        _ sequenceNumber: UInt16, _ timestamp: UInt32, of format: UInt8
    ) -> (sequence: Int64, timestamp: Int64)? {
        if format == self.format { return clock.extend(sequence: sequenceNumber, timestamp: timestamp) }
        guard format == self.format &- 1, var former = formerClock else { return nil }
        let extended = former.extend(sequence: sequenceNumber, timestamp: timestamp)
        formerClock = former
        return extended
    }

    /// The extended number nearest to those seen before; nil before the first packet.
    @_noAllocation @_noLocks
    func number(of sequenceNumber: UInt16) -> Int64? { clock.peek(sequence: sequenceNumber) }

    /// The media time nearest to those seen before; nil before the first packet.
    @_noAllocation @_noLocks
    func time(of timestamp: UInt32) -> Int64? { clock.peek(timestamp: timestamp) }

    /// The number in the header of a packet.
    @_noAllocation @_noLocks
    func sequenceNumber(of number: Int64) -> UInt16 { clock.wire(number) }

    @_noAllocation @_noLocks
    func samples(inTicks ticks: UInt32) -> Int64 { Int64(ticks) &* clock.samplesPerTick }
}
