/// Learns from when packets come how late they are, and chooses how long to wait for them.
struct DelayEstimator: ~Copyable {
    private var history: ArrivalHistory
    private var gaps = GapEstimator()
    private var target: TargetDelay

    init(_ configuration: PlayoutConfiguration) {
        let target = TargetDelay(configuration)
        self.target = target
        history = ArrivalHistory(
            memoryMilliseconds: configuration.memoryMilliseconds, longestDelay: target.maximum)
    }

    /// Begins with another stream: keeps what was learnt of the path's jitter.
    @_noAllocation @_noLocks
    mutating func startAfresh() {
        history.forgetBaseline()
        target.forgetChoice()
        gaps = GapEstimator()
    }

    // MARK: Arrivals

    /// The least transit of the last seconds, in nanoseconds: arrival minus media time.
    var baseline: Int64 {
        @_noAllocation @_noLocks get { history.baseline }
    }

    /// Learns from when a packet came, and from the gap that it shows.
    ///
    /// - Parameter missing: As ``ReceivedStream/gap(before:)``.
    @_noAllocation @_noLocks
    mutating func learn(
        from entry: PacketStore.Entry, missing: Int64, _ queue: borrowing PacketQueue, repairNanoseconds: Int64?
    ) {
        settleGap(at: entry.arrivalNanoseconds, queue, repairNanoseconds: repairNanoseconds)
        if missing < 0, !gaps.noteLate(entry.sequence) { return }
        let transit = entry.arrivalNanoseconds &- StreamClock.nanoseconds(samples: entry.timestamp)
        let duration = StreamClock.nanoseconds(samples: Int64(entry.samples))
        history.record(
            transit: transit, at: entry.arrivalNanoseconds, duration: duration, isOvertaken: missing < 0)
        guard missing > 0 else { return }
        // One gap at a time: a second one within so short a time proves that the first is none of order.
        settleGap(at: .max, queue, repairNanoseconds: repairNanoseconds)
        gaps.open(before: entry, missing: missing, transit: transit, duration: duration)
    }

    /// As ``GapEstimator/settle(at:_:repairNanoseconds:into:)``.
    @_noAllocation @_noLocks
    mutating func settleGap(at now: Int64, _ queue: borrowing PacketQueue, repairNanoseconds: Int64?) {
        gaps.settle(at: now, queue, repairNanoseconds: repairNanoseconds, into: &history)
    }

    /// Learns from a copy of a packet: if that is missing, what waiting for the copy would be worth.
    @_noAllocation @_noLocks
    mutating func learn(fromCopyOf sequence: Int64, in carrier: Int64, transit: Int64, isMissing: Bool) {
        gaps.noteCopy(of: sequence, in: carrier)
        if isMissing { history.recordRestorable(delay: transit &- history.baseline, share: 1) }
    }

    /// A packet was asked for again: it comes late for reasons of its own.
    @_noAllocation @_noLocks
    mutating func noteRequest(for sequence: Int64) { gaps.noteRequest(for: sequence) }

    // MARK: The target delay

    /// The transit aimed at, in nanoseconds: a sample is to be played this long after its media time.
    var targetTransit: Int64 {
        @_noAllocation @_noLocks get { target.transit }
    }

    /// Whether the path may have become longer, so that there is no telling yet what is too much delay.
    var mayHaveStepped: Bool {
        @_noAllocation @_noLocks get { history.mayHaveStepped }
    }

    /// The longest transit that is allowed.
    var longestTransit: Int64 {
        @_noAllocation @_noLocks get { history.baseline &+ target.maximum }
    }

    /// Chooses the target again.
    ///
    /// - Parameter received: Nanoseconds of sound received since the stream began.
    @_noAllocation @_noLocks
    mutating func update(_ grid: TargetDelay.Grid, received: Int64) {
        target.update(history, grid, received: received)
    }

    /// As ``TargetDelay/worthwhileAdvance(_:_:)``.
    @_noAllocation @_noLocks
    func worthwhileAdvance(_ grid: TargetDelay.Grid) -> Int64 { target.worthwhileAdvance(history, grid) }

    /// Notes that pulls come earlier from now on.
    @_noAllocation @_noLocks
    mutating func advancePulls(nanoseconds: Int64) { target.advance(nanoseconds: nanoseconds) }
}
