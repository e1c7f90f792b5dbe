public import Core

/// Counts of one incoming stream: order, loss and jitter (RFC 3550 §6.4.1, appendices A.1, A.3, A.8).
public struct ReceptionStatistics: Equatable, Sendable {
    /// The effect of one packet on the counts.
    public enum Outcome: Equatable, Sendable {
        /// Counted.
        case counted
        /// Not counted: the stream must first show packets in sequence.
        case onProbation
        /// Not counted: it is far from the stream's position. A packet in sequence after it restarts the stream.
        case outOfPlace
        /// The stream was restarted with this packet; earlier counts are discarded.
        case restarted
    }

    /// A packet's relation to the stream.
    public struct Arrival: Equatable, Sendable {
        /// Its effect on the counts.
        public let outcome: Outcome
        /// Its sequence number, extended so that it never wraps (RFC 3550 §A.1): its low 16 bits are those of the header, and
        /// the stream's first packet keeps its own. A little below zero for a packet that was overtaken by the first ones.
        public let number: Int64

        @_noAllocation @_noLocks
        init(_ outcome: Outcome, number: Int64) {
            self.outcome = outcome
            self.number = number
        }
    }

    /// Ticks of the RTP timestamp per second, as of the last packet.
    public private(set) var clockRate: Int
    /// Packets of this stream, repeated ones included.
    public private(set) var packetsReceived: Int64 = 0
    /// How often the stream was restarted after a jump.
    public private(set) var restarts: Int64 = 0

    private let packetsOnProbation: Int
    private var probation: Int
    private var hasStarted = false
    private var base: Int64 = 0
    private var highest: Int64 = 0
    private var suspect: Int64?
    private var expectedAtReport: Int64 = 0
    private var receivedAtReport: Int64 = 0
    private var lastTransit: Int32?
    /// Jitter in ticks times 16, so that rounding does not hold it back (A.8).
    private var scaledJitter: Int64 = 0

    /// The largest gap that is still loss (RFC 3550 A.1, MAX_DROPOUT).
    private static var maxDropout: Int64 { @_noAllocation @_noLocks get { 3000 } }
    /// How far behind a packet may be and still be a late one (RFC 3550 A.1, MAX_MISORDER).
    private static var maxMisorder: Int64 { @_noAllocation @_noLocks get { 100 } }
    /// How far behind a packet's number may be before it is taken for one that is ahead: a minute. Those between this and
    /// ``maxMisorder`` are out of place, but behind.
    private static var maxBehind: Int64 { @_noAllocation @_noLocks get { 3_000 } }

    /// Makes an empty count.
    ///
    /// - Parameters:
    ///   - clockRate: Ticks of the RTP timestamp per second, above zero.
    ///   - packetsOnProbation: Packets in sequence that a new stream must show before it counts. Zero suits
    ///     authenticated media, where a stray packet cannot pose as a stream; RFC 3550 A.1 takes 2 elsewhere.
    @_noAllocation @_noLocks
    public init(clockRate: Int = 48_000, packetsOnProbation: Int = 0) {
        precondition(clockRate > 0, "a clock that does not run measures nothing")
        self.clockRate = clockRate
        self.packetsOnProbation = packetsOnProbation
        probation = packetsOnProbation
    }

    /// Counts one packet, and extends its sequence number. Everything else that needs the number takes it from here.
    ///
    /// - Parameters:
    ///   - arrival: When it came in; the kernel's receive time if there is one.
    ///   - measuresJitter: Its timestamp advances with time, unlike that of a telephone event.
    ///   - clockRate: Ticks of its timestamp per second, if they may differ from before: a stream may change its codec.
    @_noAllocation @_noLocks
    public mutating func receive(
        _ header: RTPHeader, at arrival: Instant, measuresJitter: Bool = true, clockRate: Int? = nil
    ) -> Arrival {
        if let clockRate, measuresJitter { change(to: clockRate) }
        let number = extended(header.sequenceNumber)
        let outcome = place(number)
        switch outcome {
        case .counted, .restarted:
            packetsReceived += 1
            if measuresJitter {
                measureJitter(timestamp: header.timestamp, at: arrival, anew: outcome == .restarted)
            }
        case .onProbation, .outOfPlace:
            break
        }
        return Arrival(outcome, number: number)
    }

    @_noAllocation @_noLocks
    private func extended(_ sequenceNumber: UInt16) -> Int64 {
        guard hasStarted else { return Int64(sequenceNumber) }
        let ahead = Int64(sequenceNumber &- UInt16(truncatingIfNeeded: highest))
        let number = highest + (ahead < 65_536 - Self.maxBehind ? ahead : ahead - 65_536)
        // Only a packet that the stream's first ones have overtaken is before them.
        return number > -Self.maxMisorder ? number : number + 65_536
    }

    /// Changes the clock rate; the first packet at the new rate is not compared with the last one at the old rate. RFC
    /// 7160 §4.3 compares them at one rate, which measures jitter only if senders continue their timestamps as in its
    /// §4.2.
    @_noAllocation @_noLocks
    private mutating func change(to rate: Int) {
        guard rate != clockRate, rate > 0 else { return }
        scaledJitter = scaledJitter * Int64(rate) / Int64(clockRate)
        lastTransit = nil
        clockRate = rate
    }

    @_noAllocation @_noLocks
    private mutating func place(_ number: Int64) -> Outcome {
        guard hasStarted else {
            start(at: number)
            return probation > 0 ? .onProbation : .counted
        }
        let step = number - highest
        if probation > 0 {
            guard step == 1 else {
                start(at: number)
                return .onProbation
            }
            probation -= 1
            highest = number
            guard probation == 0 else { return .onProbation }
            base = highest
            return .counted
        }
        if step >= 0, step < Self.maxDropout {
            highest = number
            suspect = nil
        } else if step >= 0 || step <= -Self.maxMisorder {
            guard number == suspect else {
                suspect = number + 1
                return .outOfPlace
            }
            restart(at: number)
            return .restarted
        }
        return .counted
    }

    @_noAllocation @_noLocks
    private mutating func start(at number: Int64) {
        hasStarted = true
        probation = max(0, packetsOnProbation - 1)
        base = number
        highest = base
        suspect = nil
    }

    @_noAllocation @_noLocks
    private mutating func restart(at number: Int64) {
        base = number
        highest = base
        suspect = nil
        packetsReceived = 0
        expectedAtReport = 0
        receivedAtReport = 0
        restarts += 1
    }

    @_noAllocation @_noLocks
    private mutating func measureJitter(timestamp: UInt32, at arrival: Instant, anew: Bool) {
        let ticks = MediaClock.ticks(fromNanoseconds: arrival.nanoseconds, clockRate: clockRate)
        let transit = Int32(truncatingIfNeeded: ticks &- Int64(timestamp))
        if let last = lastTransit, !anew {
            let change = Int64(transit &- last).magnitude
            scaledJitter += Int64(change) - ((scaledJitter + 8) >> 4)
        }
        lastTransit = transit
    }
}

extension ReceptionStatistics {
    /// A packet of this stream has been counted.
    public var isStarted: Bool {
        @_noAllocation @_noLocks get { hasStarted && probation == 0 }
    }

    /// The highest sequence number, with the count of wraps in the upper 16 bits (RFC 3550 §6.4.1).
    public var extendedHighestSequence: UInt32 {
        @_noAllocation @_noLocks get { UInt32(truncatingIfNeeded: highest) }
    }

    /// Packets that should have come so far.
    public var packetsExpected: Int64 {
        @_noAllocation @_noLocks get { isStarted ? highest - base + 1 : 0 }
    }

    /// Packets that did not come; below zero if more were repeated than lost (RFC 3550 A.3).
    public var cumulativeLost: Int64 {
        @_noAllocation @_noLocks get { packetsExpected - packetsReceived }
    }

    /// Mean deviation of the spacing of arrivals from that of sending, in ticks of the clock (RFC 3550 §6.4.1).
    public var jitterTicks: UInt32 {
        @_noAllocation @_noLocks get {
            UInt32(truncatingIfNeeded: min(scaledJitter >> 4, Int64(UInt32.max)))
        }
    }

    /// ``jitterTicks`` as a time.
    public var jitterNanoseconds: Int64 {
        @_noAllocation @_noLocks get { Int64(jitterTicks) * 1_000_000_000 / Int64(clockRate) }
    }

    /// The report on this stream, and the start of a new interval for its fraction of loss.
    ///
    /// ``ReportBlock/lastSenderReport`` and ``ReportBlock/delaySinceLastSenderReport`` are left zero.
    @_noAllocation @_noLocks
    public mutating func makeReport(on ssrc: UInt32) -> ReportBlock {
        let expected = packetsExpected
        let expectedNow = expected - expectedAtReport
        let lostNow = expectedNow - (packetsReceived - receivedAtReport)
        expectedAtReport = expected
        receivedAtReport = packetsReceived
        let fraction = expectedNow <= 0 || lostNow <= 0 ? 0 : min(255, (lostNow << 8) / expectedNow)
        return ReportBlock(
            ssrc: ssrc, fractionLost: UInt8(truncatingIfNeeded: fraction),
            cumulativeLost: Int32(truncatingIfNeeded: max(-0x80_0000, min(0x7F_FFFF, cumulativeLost))),
            extendedHighestSequence: extendedHighestSequence, jitterTicks: jitterTicks)
    }
}
