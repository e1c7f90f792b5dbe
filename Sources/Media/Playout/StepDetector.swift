/// Detects the packets of a stall of which no delay could have bridged half. They come in a burst behind it, and are no
/// reason for more delay: that would remain for many seconds, and save nothing.
struct LongStall {
    private let leastDelay: Int64
    /// The transit of the newest packet of a stall that has not caught up.
    private var newest: Int64?
    /// The next packet may be one of a stall, whose path is not known any more.
    private var isUnknown = false

    /// - Parameter longestDelay: The most delay that can be chosen, in nanoseconds.
    @_noAllocation @_noLocks
    init(longestDelay: Int64) { leastDelay = 2 &* longestDelay }

    /// Whether a packet is one of a stall.
    ///
    /// - Parameters:
    ///   - transit: Its arrival minus its media time, in nanoseconds.
    ///   - delay: That above the fastest path.
    ///   - duration: Nanoseconds of sound in the packet.
    ///   - isOvertaken: A packet sent later came before it.
    @_noAllocation @_noLocks
    mutating func holds(transit: Int64, delay: Int64, duration: Int64, isOvertaken: Bool) -> Bool {
        guard let former = newest else {
            guard isUnknown || delay > leastDelay else { return false }
            (newest, isUnknown) = (transit, false)
            return true
        }
        if isOvertaken { return true }
        // Packets that catch up come at least a quarter faster than they were sent.
        newest = transit < former &- duration / 4 ? transit : nil
        return newest != nil
    }

    /// The fastest path is not known any more.
    @_noAllocation @_noLocks
    mutating func forgetPath() { (newest, isUnknown) = (nil, true) }
}

/// Detects by arrival times that a path has become longer at once, or that the sender was silent without advancing its
/// timestamps. Then packets stay late by as much as the first, while those behind a stall come in a burst and catch up.
struct StepDetector {
    /// Packets in order that are late by a step at least.
    private struct Run {
        /// When the first of them came, or the newest that caught up; its transit; and the least since.
        var since: Int64
        var transit: Int64
        var least: Int64
        var packets = 1
        var hasCaughtUp = false
    }

    /// The newest packet's transit.
    private var last: Int64?
    private var run: Run?

    /// Less may be jitter: 200 ms.
    static var leastStep: Int64 { @_noAllocation @_noLocks get { 200_000_000 } }
    /// Packets that are less late by more than this are catching up: 10 ms.
    private static var tolerance: Int64 { @_noAllocation @_noLocks get { 10_000_000 } }
    /// The time in which none may catch up: 100 ms.
    private static var proof: Int64 { @_noAllocation @_noLocks get { 100_000_000 } }

    /// The packets that must have come, because a path that stalls again and again shows fewer.
    private static var leastPackets: Int { @_noAllocation @_noLocks get { 3 } }

    @_noAllocation @_noLocks
    init() {}

    /// Whether a step may have come: packets are late, and none has caught up yet.
    var isOpen: Bool {
        @_noAllocation @_noLocks get {
            guard let run else { return false }
            return !run.hasCaughtUp
        }
    }

    /// Records a packet that no later one has overtaken.
    ///
    /// - Returns: The least transit of the path as it is now, once it is certain that it has become longer.
    @_noAllocation @_noLocks
    mutating func record(transit: Int64, at arrival: Int64, above baseline: Int64) -> Int64? {
        let before = last ?? transit
        last = transit
        guard transit &- baseline > Self.leastStep else {
            run = nil
            return nil
        }
        guard var late = run else {
            if transit &- before > Self.leastStep { run = Run(since: arrival, transit: transit, least: transit) }
            return nil
        }
        if transit < late.transit &- Self.tolerance {
            late = Run(since: arrival, transit: transit, least: transit, hasCaughtUp: true)
        }
        late.least = min(late.least, transit)
        late.packets &+= 1
        guard arrival &- late.since >= Self.proof, late.packets >= Self.leastPackets else {
            run = late
            return nil
        }
        run = nil
        return late.least
    }
}
