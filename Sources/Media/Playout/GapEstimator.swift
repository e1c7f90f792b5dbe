/// A gap in the packet numbers that a packet has just shown.
///
/// What is missing may only have been overtaken, so nothing is learnt from the gap before ``LossDetector/overtakingNanoseconds``
/// have passed.
private struct FreshGap: BitwiseCopyable {
    /// The first packet after the gap.
    var end: Int64
    /// Packets missing before `end`.
    var missing: Int64
    /// When the packet at `end` came, and how long that was after its media time.
    var arrival: Int64
    var transit: Int64
    /// Nanoseconds of sound in one packet.
    var duration: Int64
    /// Nanoseconds before `end` that its forward error correction restores.
    var restorable: Int64
    /// Bit n: packet `end` − 1 − n needs no repair, because it came late or because a copy of it came.
    var settled: UInt64

    @_noAllocation @_noLocks
    init(
        end: Int64, missing: Int64, arrival: Int64, transit: Int64, duration: Int64, restorable: Int64, settled: UInt64
    ) {
        self.end = end
        self.missing = missing
        self.arrival = arrival
        self.transit = transit
        self.duration = duration
        self.restorable = restorable
        self.settled = settled
    }

    /// Records that a packet of the gap arrived after all.
    @_noAllocation @_noLocks
    mutating func note(_ sequence: Int64) {
        let age = end &- sequence
        if age >= 1, age <= 64 { settled |= 1 << UInt64(age &- 1) }
    }

    /// Whether the packet `age` numbers before `end` is still missing.
    @_noAllocation @_noLocks
    func lacks(_ age: Int64) -> Bool { age > 64 || settled & 1 << UInt64(age &- 1) == 0 }
}

/// Which earlier packets the packet that is inserted next carries copies of (RFC 2198).
private struct CarriedCopies: BitwiseCopyable {
    /// The packet that carries them.
    private var carrier: Int64 = .min
    /// Bit n: it carries a copy of packet `carrier` − 1 − n.
    private var ages: UInt64 = 0

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func note(_ sequence: Int64, in packet: Int64) {
        if carrier != packet { (carrier, ages) = (packet, 0) }
        let age = packet &- sequence
        if age >= 1, age <= 64 { ages |= 1 << UInt64(age &- 1) }
    }

    /// The copies in `packet`, as ``FreshGap/settled`` has them.
    @_noAllocation @_noLocks
    func ages(in packet: Int64) -> UInt64 { packet == carrier ? ages : 0 }
}

/// Estimates from gaps between packets what waiting longer would be worth: for repairs of what is missing, by a later
/// packet's forward error correction or by a retransmission.
struct GapEstimator: ~Copyable {
    /// Packets of one gap that are waited for; longer gaps are outages.
    private static var mostRepaired: Int64 { @_noAllocation @_noLocks get { 8 } }
    /// The weight of a packet in a gap of four or more, as a multiple of a single missing one.
    private static var mostWorth: Float { @_noAllocation @_noLocks get { 2.5 } }
    /// Restored sound is worth this much of the packet itself.
    private static var recoveryWorth: Float { @_noAllocation @_noLocks get { 0.7 } }

    /// The newest gap between packets, until it is known whether what is missing was only overtaken.
    private var freshGap: FreshGap?
    /// The copies in the packet that is inserted next.
    private var carried = CarriedCopies()
    /// Packets that were asked for again: when they come says nothing of the path.
    private var requested = PacketNumbers()

    @_noAllocation @_noLocks
    init() {}

    /// A packet was asked for again: it comes late for reasons of its own.
    @_noAllocation @_noLocks
    mutating func noteRequest(for sequence: Int64) { requested.insert(sequence) }

    /// Notes that a packet, which is inserted next, carries a copy of another.
    @_noAllocation @_noLocks
    mutating func noteCopy(of sequence: Int64, in carrier: Int64) { carried.note(sequence, in: carrier) }

    /// Notes that a packet came which others had overtaken.
    ///
    /// - Returns: Whether when it came says something of the path.
    @_noAllocation @_noLocks
    mutating func noteLate(_ sequence: Int64) -> Bool {
        freshGap?.note(sequence)
        return !requested.contains(sequence)
    }

    /// Notes the gap of `missing` packets before one that came `transit` after its media time.
    @_noAllocation @_noLocks
    mutating func open(before entry: PacketStore.Entry, missing: Int64, transit: Int64, duration: Int64) {
        freshGap = FreshGap(
            end: entry.sequence, missing: entry.isDiscontinuous ? 0 : missing, arrival: entry.arrivalNanoseconds,
            transit: transit, duration: duration,
            restorable: StreamClock.nanoseconds(samples: Int64(entry.restorableSamples)),
            settled: carried.ages(in: entry.sequence))
    }

    /// Records what waiting for the packets that the newest gap lacks would be worth, once they are not just overtaken.
    ///
    /// - Parameters:
    ///   - now: `.max` if they are known not to be.
    ///   - repairNanoseconds: How long after a request a lost packet comes; nil if none is asked for.
    @_noAllocation @_noLocks
    mutating func settle(
        at now: Int64, _ queue: borrowing PacketQueue, repairNanoseconds: Int64?, into history: inout ArrivalHistory
    ) {
        guard let gap = freshGap, now &- gap.arrival >= LossDetector.overtakingNanoseconds || now == .max else {
            return
        }
        freshGap = nil
        let delay = gap.transit &- history.baseline
        let restores = gap.restorable > 0 && gap.lacks(1) && !queue.isSoundless(gap.end &- 1)
        if restores { history.recordRestorable(delay: delay &+ gap.restorable, share: Self.recoveryWorth) }
        guard let repair = repairNanoseconds, gap.missing > 0 else { return }
        // A long gap is worse for each packet in it, because concealment fades.
        let worth = min(1 + Float(gap.missing &- 1) / 2, Self.mostWorth)
        for age in 1...min(gap.missing, Self.mostRepaired)
        where gap.lacks(age) && !queue.isSoundless(gap.end &- age) {
            // Forward error correction has most of the last one's worth already.
            let share = (age == 1 && restores ? 1 - Self.recoveryWorth : 1) * worth
            history.recordRestorable(delay: delay &+ age &* gap.duration &+ repair, share: share)
        }
    }
}
