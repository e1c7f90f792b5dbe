internal import Core

/// Watches how busy a media worker is, and limits the effort of its encoders before frames are late.
///
/// A value without a clock: the worker reports how long it waited, which frames it ran, and how much CPU time it has used. Once in
/// each window it compares the load with two marks. Above ``highMark`` the encoders get the next lower complexity, two steps at once
/// if nearly no time is left. The limit rises one step when the load that the calls had at the higher complexity, as last measured
/// there, fits again.
///
/// The load is the worker's own work, its CPU time, and what others take of the core that it needs: the time for which it was to run
/// and did not, as beside other programs, or above a limit of the container's. That second part is averaged over some windows, because
/// neighbours come and go; lateness up to ``graceNanoseconds`` costs no frame and does not count. What a call costs is learned from the
/// worker's own work alone, for calls with Opus and others apart.
struct LoadGovernor: BitwiseCopyable {
    /// Above this share the effort is lowered. Linux gives real-time threads 95 % of a core at most
    /// (`sched_rt_runtime_us`), and frames that are due at one moment wait for each other.
    static var highMark: Double { @_noAllocation @_noLocks get { 0.85 } }
    /// Above this share two steps are taken at once.
    private static var alarmMark: Double { @_noAllocation @_noLocks get { 0.95 } }
    /// Load that is expected at the next higher complexity must be below this for the limit to rise.
    private static var riseMark: Double { @_noAllocation @_noLocks get { 0.84 } }
    /// Time over which the load is measured.
    static var windowNanoseconds: Int64 { @_noAllocation @_noLocks get { 250_000_000 } }
    /// A limit holds at least this long before it rises: four steps take 6 s. Twice as long after each rise that did not
    /// last, up to ``longestSettleNanoseconds``.
    private static var settleNanoseconds: Int64 { @_noAllocation @_noLocks get { 1_500_000_000 } }
    private static var longestSettleNanoseconds: Int64 { @_noAllocation @_noLocks get { 24_000_000_000 } }
    /// How long a rise must hold to count as lasting.
    private static var lastingNanoseconds: Int64 { @_noAllocation @_noLocks get { 5_000_000_000 } }
    /// A wake-up that is no later than this is none of a busy machine: calls wait for each other for as long (``Pacer``).
    private static var graceNanoseconds: Int64 { @_noAllocation @_noLocks get { 5_000_000 } }
    /// How much of what others took in the last window counts at once.
    private static var stolenWeight: Double { @_noAllocation @_noLocks get { 0.5 } }
    /// What the lowest complexity saves of the work of calls with Opus, at most.
    private static var mostSaving: Double { @_noAllocation @_noLocks get { 0.66 } }
    /// Less than this is not worth a lower effort where neighbours have the core.
    private static var leastSaving: Double { @_noAllocation @_noLocks get { 0.1 } }
    /// With fewer calls in a window their beginning costs more than their frames.
    private static var leastCalls: Double { @_noAllocation @_noLocks get { 0.5 } }
    /// Windows with a frame later than this show the cost of a backlog, not of calls.
    private static var backlogNanoseconds: Int64 { @_noAllocation @_noLocks get { 20_000_000 } }

    /// The worker's load in the last window.
    private(set) var load: WorkerLoad

    private var windowStart: Instant?
    private var waitedNanoseconds: Int64 = 0
    private var soundNanoseconds: Int64 = 0
    /// Of calls whose effort can be changed.
    private var adjustableNanoseconds: Int64 = 0
    /// The thread's CPU time when the window began; nil until it is known.
    private var threadNanoseconds: Int64?
    /// What others take of the core, on average.
    private var stolen = 0.0
    /// Share of the core for a call whose effort cannot be changed.
    private var costOfOther: Double
    private var worstLatenessNanoseconds: Int64 = 0
    private var changedAt = Instant(nanoseconds: 0)
    private var roseLast = false
    private var settle = LoadGovernor.settleNanoseconds
    /// Shares of the core for one call, by complexity; zero where nothing is known yet.
    private var costs = InlineArray<11, Double>(repeating: 0)

    /// - Parameter costOfCall: Share of a core that a call is expected to take, until calls have been measured.
    init(costOfCall: Double) {
        load = WorkerLoad(costOfCall: costOfCall)
        costOfOther = costOfCall
    }

    /// The highest complexity that encoders may use now, 0…10.
    var complexityLimit: Int { @_noAllocation @_noLocks get { load.complexityLimit } }

    /// The worker has waited for its next deadline. A wait that ends late by more than ``graceNanoseconds`` counts only up to the
    /// deadline.
    @_noAllocation @_noLocks
    mutating func waited(from start: Instant, until deadline: Instant?, wokenAt end: Instant) {
        var idleUntil = end.nanoseconds
        if let deadline, end.nanoseconds - deadline.nanoseconds > Self.graceNanoseconds {
            idleUntil = max(deadline.nanoseconds, start.nanoseconds)
        }
        waitedNanoseconds += max(0, idleUntil - start.nanoseconds)
    }

    /// A frame of this length has been run, so late.
    ///
    /// - Parameter isAdjustable: Whether the encoder's effort can be changed, which is that of Opus.
    @_noAllocation @_noLocks
    mutating func ran(frameOf periodNanoseconds: Int64, latenessNanoseconds: Int64, isAdjustable: Bool = true) {
        soundNanoseconds += periodNanoseconds
        if isAdjustable { adjustableNanoseconds += periodNanoseconds }
        worstLatenessNanoseconds = max(worstLatenessNanoseconds, latenessNanoseconds)
    }

    /// Whether a window has ended, and ``endWindow(at:highestComplexity:)`` is due.
    @_noAllocation @_noLocks
    mutating func isWindowOver(at now: Instant) -> Bool {
        guard let start = windowStart else {
            beginWindow(at: now)
            return false
        }
        return start.nanoseconds(to: now) >= Self.windowNanoseconds
    }

    /// Measures the window that ends now and decides about the limit.
    ///
    /// - Parameters:
    ///   - highestComplexity: What the most demanding encoder is set to; nil if no call's effort can be changed.
    ///   - thread: CPU time that the worker's thread has used until now; nil counts all time in which it did not wait.
    @_noAllocation @_noLocks
    mutating func endWindow(at now: Instant, highestComplexity: Int?, threadNanoseconds thread: Int64? = nil) {
        guard let start = windowStart else { return }
        let length = Double(max(1, start.nanoseconds(to: now)))
        let busy = max(0, 1 - Double(waitedNanoseconds) / length)
        load.runningCalls = Double(soundNanoseconds) / length
        let adjustable = Double(adjustableNanoseconds) / length
        let others = load.runningCalls - adjustable
        var work = busy
        // The first window does not know how much CPU time the thread had used when it began.
        let isKnown = thread == nil || threadNanoseconds != nil
        if let thread {
            let expected = min(busy, load.costOfCall * adjustable + costOfOther * others)
            work = threadNanoseconds.map { min(1, Double(max(0, thread - $0)) / length) } ?? expected
        }
        threadNanoseconds = thread
        stolen += Self.stolenWeight * (max(0, busy - work) - stolen)
        load.share = min(1, work + stolen)
        let effort = min(load.complexityLimit, highestComplexity ?? 0)
        if isKnown { learnCosts(of: work, adjustable: adjustable, others: others, at: effort) }
        load.adjustableShare = min(work, load.costOfCall * adjustable)
        load.canLower = highestComplexity != nil && effort > 0
        decide(effort, highestComplexity, adjustable: adjustable, at: now)
        beginWindow(at: now)
    }

    /// No call is left: nothing is limited any more.
    ///
    /// - Returns: Whether that is new.
    @_noAllocation @_noLocks
    mutating func reset() -> Bool {
        guard case .some = windowStart else { return false }
        load.share = 0
        load.runningCalls = 0
        load.adjustableShare = 0
        load.complexityLimit = 10
        load.canLower = true
        windowStart = nil
        threadNanoseconds = nil
        stolen = 0
        return true
    }

    @_noAllocation @_noLocks
    private mutating func beginWindow(at now: Instant) {
        windowStart = now
        waitedNanoseconds = 0
        soundNanoseconds = 0
        adjustableNanoseconds = 0
        worstLatenessNanoseconds = 0
    }

    /// Learns what a call of each kind costs from the work of both: what they took more than was expected is shared out by their
    /// numbers, so that with one kind alone it is that kind's. A few calls pay for wake-ups that many would share, so their
    /// measurement counts less.
    @_noAllocation @_noLocks
    private mutating func learnCosts(of work: Double, adjustable: Double, others: Double, at effort: Int) {
        guard load.runningCalls >= Self.leastCalls, worstLatenessNanoseconds < Self.backlogNanoseconds else { return }
        load.meanCost = work / load.runningCalls
        let excess =
            (work - load.costOfCall * adjustable - costOfOther * others) / (adjustable * adjustable + others * others)
        let otherWeight = min(0.4, others / 20)
        costOfOther = max(0, costOfOther + otherWeight * excess * others)
        guard adjustable >= Self.leastCalls else { return }
        let cost = max(0, load.costOfCall + excess * adjustable)
        let weight = min(0.4, adjustable / 20)
        load.costOfCall += weight * (cost - load.costOfCall)
        costs[effort] = costs[effort] == 0 ? cost : costs[effort] + weight * (cost - costs[effort])
    }

    @_noAllocation @_noLocks
    private mutating func decide(
        _ effort: Int, _ highestComplexity: Int?, adjustable: Double, at now: Instant
    ) {
        let age = changedAt.nanoseconds(to: now)
        if roseLast, age >= Self.lastingNanoseconds {
            roseLast = false
            settle = Self.settleNanoseconds
        }
        if load.share > Self.highMark {
            // Sound is not made worse for neighbours' sake if that gains next to nothing.
            let saved = Self.mostSaving * load.adjustableShare
            let helps = saved > Self.leastSaving && load.share - saved < Self.highMark
            let isOwn = load.share - stolen > Self.highMark
            if load.canLower, helps || isOwn { lower(from: effort, at: now) }
        } else if load.complexityLimit < 10, age >= settle {
            raise(from: effort, towards: highestComplexity ?? 0, adjustable: adjustable, at: now)
        }
    }

    @_noAllocation @_noLocks
    private mutating func lower(from effort: Int, at now: Instant) {
        let next = Self.step(below: effort)
        load.complexityLimit = load.share > Self.alarmMark ? Self.step(below: next) : next
        if roseLast { settle = min(2 * settle, Self.longestSettleNanoseconds) }
        roseLast = false
        changedAt = now
    }

    @_noAllocation @_noLocks
    private mutating func raise(from effort: Int, towards highest: Int, adjustable: Double, at now: Instant) {
        let step = Self.step(above: load.complexityLimit)
        let next = min(step, highest)
        // A step that has not been measured can only be tried.
        let cost = costs[effort] > 0 ? costs[effort] : load.costOfCall
        let expected =
            next > effort && costs[next] > 0 ? load.share + max(0, costs[next] - cost) * adjustable : load.share
        guard expected < Self.riseMark else { return }
        load.complexityLimit = step >= highest ? 10 : step
        roseLast = true
        changedAt = now
    }

    // Complexities that differ in what they cost: libopus does the same work from 8 to 10, and nearly so between others.
    @_noAllocation @_noLocks
    private static func step(below complexity: Int) -> Int {
        switch complexity {
        case 6...: 5
        case 4...: 3
        case 2...: 1
        default: 0
        }
    }

    @_noAllocation @_noLocks
    private static func step(above complexity: Int) -> Int {
        switch complexity {
        case ..<1: 1
        case ..<3: 3
        case ..<5: 5
        default: 10
        }
    }
}

/// How busy a media worker is.
public struct WorkerLoad: BitwiseCopyable, Sendable, Equatable {
    /// Share of time that the worker's own work and what others take of its core need, 0…1.
    public internal(set) var share = 0.0
    /// The part of its own work that calls with Opus take, whose effort can be lowered.
    public internal(set) var adjustableShare = 0.0
    /// Calls whose frames it runs: seconds of sound for each second.
    public internal(set) var runningCalls = 0.0
    /// Share of time that one more call of Opus takes, which is the costliest.
    public internal(set) var costOfCall: Double
    /// Share of time that a call takes on average over all codecs.
    public internal(set) var meanCost: Double
    /// The highest complexity that Opus encoders may use now; 10 limits nothing.
    public internal(set) var complexityLimit = 10
    /// Whether a lower complexity than in use is left to make room.
    public internal(set) var canLower = true

    /// That of a worker which has had no call yet.
    @_noAllocation @_noLocks
    public init(costOfCall: Double = 0.02) {
        self.costOfCall = costOfCall
        meanCost = costOfCall
    }
}
