/// Extends the 16-bit sequence numbers and 32-bit timestamps of one RTP stream to 64 bits (RFC 3550 §A.1), the timestamps
/// as samples at 48 kHz.
struct StreamClock {
    private var lastSequence: Int64 = 0
    private var lastTimestamp: Int64 = 0
    private var hasStarted = false

    let samplesPerTick: Int64

    /// Media time, in samples, at the timestamp that counting began with.
    private var origin: Int64 = 0

    @_noAllocation @_noLocks
    init(samplesPerTick: Int64) { self.samplesPerTick = samplesPerTick }

    /// Continues with a stream of another clock rate, from a packet whose position is known.
    ///
    /// - Parameters:
    ///   - sequence: The packet's extended number, and `sequenceNumber` the one that it bears.
    ///   - time: Its media time in samples, and `timestamp` what it bears.
    @_noAllocation @_noLocks
    init(samplesPerTick: Int64, sequence: Int64, sequenceNumber: UInt16, time: Int64, timestamp: UInt32) {
        self.samplesPerTick = samplesPerTick
        hasStarted = true
        lastSequence = sequence
        sequenceOrigin = sequenceNumber &- UInt16(truncatingIfNeeded: sequence)
        timestampOrigin = timestamp
        origin = time
    }

    /// Numbers nearest to those seen before. The first packet gets sequence 0 and timestamp 0.
    @_noAllocation @_noLocks
    mutating func extend(sequence: UInt16, timestamp: UInt32) -> (sequence: Int64, timestamp: Int64) {
        if !hasStarted {
            hasStarted = true
            sequenceOrigin = sequence
            timestampOrigin = timestamp
        }
        let relativeSequence = sequence &- sequenceOrigin
        let relativeTimestamp = timestamp &- timestampOrigin
        let sequenceStep = Int16(truncatingIfNeeded: Int64(relativeSequence) &- lastSequence)
        let timestampStep = Int32(truncatingIfNeeded: Int64(relativeTimestamp) &- lastTimestamp)
        lastSequence &+= Int64(sequenceStep)
        lastTimestamp &+= Int64(timestampStep)
        return (lastSequence, origin &+ lastTimestamp &* samplesPerTick)
    }

    /// The sequence number nearest to those seen before, without moving there; nil before the first packet.
    @_noAllocation @_noLocks
    func peek(sequence: UInt16) -> Int64? {
        guard hasStarted else { return nil }
        return lastSequence &+ Int64(Int16(truncatingIfNeeded: Int64(sequence &- sequenceOrigin) &- lastSequence))
    }

    /// The timestamp nearest to those seen before, without moving there; nil before the first packet.
    @_noAllocation @_noLocks
    func peek(timestamp: UInt32) -> Int64? {
        guard hasStarted else { return nil }
        let step = Int32(truncatingIfNeeded: Int64(timestamp &- timestampOrigin) &- lastTimestamp)
        return origin &+ (lastTimestamp &+ Int64(step)) &* samplesPerTick
    }

    /// The number in packets of an extended one.
    @_noAllocation @_noLocks
    func wire(_ sequence: Int64) -> UInt16 { sequenceOrigin &+ UInt16(truncatingIfNeeded: sequence) }

    /// Media time in nanoseconds of `samples` at 48 kHz.
    @_noAllocation @_noLocks
    static func nanoseconds(samples: Int64) -> Int64 { samples &* 62_500 / 3 }

    /// Samples at 48 kHz in `nanoseconds`, rounded towards zero.
    @_noAllocation @_noLocks
    static func samples(nanoseconds: Int64) -> Int { Int(nanoseconds &* 3 / 62_500) }

    private var sequenceOrigin: UInt16 = 0
    private var timestampOrigin: UInt32 = 0
}
