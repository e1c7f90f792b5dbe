internal import Core

/// The stream that is received: whose it is, the media times of its packets, and how far it has come.
struct ReceivedStream {
    /// nil before the first packet.
    private var ssrc: UInt32?
    private var timeline: MediaTimeline
    /// One past the newest packet received, as number and as media time.
    private(set) var endSequence: Int64 = 0
    private var endTimestamp: Int64 = 0
    /// One past the newest packet that came itself, not as a copy in another.
    private var endOfArrivals: Int64 = 0
    /// Where its sound ends.
    private var endOfArrivalsTimestamp: Int64 = 0
    /// Sound in one packet, as of the last one.
    private(set) var packetSamples = 960
    /// Sound received since the stream began.
    private(set) var receivedNanoseconds: Int64 = 0

    /// A media time that is off by more than this belongs to another stream.
    private static var timestampJumpNanoseconds: Int64 { @_noAllocation @_noLocks get { 3_000_000_000 } }
    /// A sequence number that is off by more than this does too.
    private static var sequenceJump: Int64 { @_noAllocation @_noLocks get { 1_500 } }
    /// 400 ms: more than ordinary networks hold packets back.
    private static var pauseSamples: Int64 { @_noAllocation @_noLocks get { 19_200 } }

    init(samplesPerTick: Int64) { timeline = MediaTimeline(format: 0, samplesPerTick: samplesPerTick) }

    /// Begins with another stream.
    @_noAllocation @_noLocks
    mutating func startAfresh(in format: UInt8, samplesPerTick: Int64) {
        timeline = MediaTimeline(format: format, samplesPerTick: samplesPerTick)
        endSequence = 0
        endTimestamp = 0
        endOfArrivals = 0
        endOfArrivalsTimestamp = 0
        receivedNanoseconds = 0
    }

    /// Takes note of whose stream it is.
    ///
    /// - Returns: Whether it was another's before.
    @_noAllocation @_noLocks
    mutating func identify(by ssrc: UInt32) -> Bool {
        defer { self.ssrc = ssrc }
        guard let former = self.ssrc else { return false }
        return former != ssrc
    }

    // MARK: Numbers and times

    /// Whether packets of a format are what times are counted by.
    @_noAllocation @_noLocks
    func isTimed(by format: UInt8) -> Bool { timeline.isOf(format) }

    /// Continues in another format, from a packet on.
    ///
    /// - Returns: Whether it continues. It begins in that format if nothing has been received.
    @_noAllocation @_noLocks
    mutating func change(
        to format: UInt8, samplesPerTick: Int64, at sequence: Int64, _ timestamp: UInt32, arrival: Instant,
        baseline: Int64
    ) -> Bool {
        guard receivedNanoseconds > 0 else {
            timeline = MediaTimeline(format: format, samplesPerTick: samplesPerTick)
            return false
        }
        let time = predictedTime(of: sequence, arrival.nanoseconds &- baseline)
        timeline.change(to: format, samplesPerTick: samplesPerTick, time: time, timestamp: timestamp)
        return true
    }

    /// The media time of the first packet whose timestamp says nothing of the packets before: as far behind them as its
    /// number is, unless its delay shows that the sender must have been silent.
    @_noAllocation @_noLocks
    private func predictedTime(of sequence: Int64, _ age: Int64) -> Int64 {
        let byNumber = endTimestamp &+ (sequence &- endSequence) &* Int64(packetSamples)
        let byArrival = Int64(StreamClock.samples(nanoseconds: age))
        return byArrival &- byNumber > Self.pauseSamples ? byArrival : byNumber
    }

    /// A packet's media time; nil if its format is known no more.
    @_noAllocation @_noLocks
    mutating func extend(_ timestamp: UInt32, of format: UInt8) -> Int64? { timeline.extend(timestamp, of: format) }

    /// Whether a place is so far from the packets before that it is of another stream.
    @_noAllocation @_noLocks
    func isJump(_ sequence: Int64, _ time: Int64, _ arrival: Instant, baseline: Int64) -> Bool {
        guard receivedNanoseconds > 0 else { return false }
        let transit = arrival.nanoseconds &- StreamClock.nanoseconds(samples: time)
        let isFarInTime = abs(transit &- baseline) > Self.timestampJumpNanoseconds
        return isFarInTime || abs(sequence &- endSequence) > Self.sequenceJump
    }

    /// Whether a packet whose timestamp does not matter is of this stream.
    @_noAllocation @_noLocks
    func contains(_ sequence: Int64, ssrc: UInt32) -> Bool {
        guard let own = self.ssrc, own == ssrc, receivedNanoseconds > 0 else { return false }
        return abs(sequence &- endSequence) <= Self.sequenceJump
    }

    // MARK: How far it has come

    /// Packets missing between the newest that came itself and one that comes now; negative if that has been overtaken.
    /// 0 for the first of all.
    @_noAllocation @_noLocks
    func gap(before sequence: Int64) -> Int64 { receivedNanoseconds == 0 ? 0 : sequence &- endOfArrivals }

    /// Takes note that a packet came itself.
    @_noAllocation @_noLocks
    mutating func noteArrival(of entry: PacketStore.Entry) {
        guard entry.sequence >= endOfArrivals else { return }
        endOfArrivals = entry.sequence &+ 1
        endOfArrivalsTimestamp = entry.timestamp &+ Int64(entry.samples)
    }

    /// Takes note that the sound of a packet is there, from itself or from a copy.
    @_noAllocation @_noLocks
    mutating func noteSound(of entry: PacketStore.Entry) {
        if !entry.isNoise { packetSamples = Int(entry.samples) }
        endSequence = max(endSequence, entry.sequence &+ 1)
        endTimestamp = max(endTimestamp, entry.timestamp &+ Int64(entry.samples))
        receivedNanoseconds &+= StreamClock.nanoseconds(samples: Int64(entry.samples))
    }

    /// Takes note that a packet came that holds no sound.
    @_noAllocation @_noLocks
    mutating func noteSoundless(_ sequence: Int64) {
        endSequence = max(endSequence, sequence &+ 1)
        endOfArrivals = max(endOfArrivals, sequence &+ 1)
    }

    // MARK: Copies

    /// Number and media time of the packet of which `carrier` holds a copy; nil if there can be none.
    ///
    /// The timestamp alone identifies the packet: a sender may repeat any of its earlier packets.
    /// - Parameters:
    ///   - ticks: By how many ticks of `timestamp`, the carrier's, the copy is older.
    ///   - duration: Samples in the copy.
    @_noAllocation @_noLocks
    func place(
        ofCopy ticks: UInt32, before timestamp: UInt32, _ duration: Int, in carrier: Int64,
        _ queue: borrowing PacketQueue
    ) -> (sequence: Int64, timestamp: Int64)? {
        guard let time = timeline.time(of: timestamp &- ticks) else { return nil }
        // How many packets before the carrier that is, if the sender was not silent in between.
        let age = timeline.samples(inTicks: ticks) / Int64(duration)
        guard age >= 1 else { return nil }
        var sequence = carrier &- age
        if carrier > endOfArrivals, time >= endOfArrivalsTimestamp {
            // It lies in the gap before the carrier. In a pause timestamps advance without numbers.
            sequence = max(sequence, endOfArrivals)
        }
        guard sequence < carrier else { return nil }
        if let before = queue.entry(sequence &- 1), before.timestamp &+ Int64(before.samples) > time { return nil }
        if let after = queue.entry(sequence &+ 1), after.timestamp < time &+ Int64(duration) { return nil }
        return (sequence, time)
    }
}
