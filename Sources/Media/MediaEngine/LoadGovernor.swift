internal import Timekeeping

/// Watches how busy a media worker is, and limits the effort of its encoders before frames are late.
///
/// A value without a clock: the worker reports how long it waited and which frames it ran. Once in each window it
/// compares the share of time in which the worker did not wait with two marks. Above ``highMark`` the encoders get the
/// next lower complexity, two steps at once if nearly no time is left. The limit rises one step when the load that the
/// calls had at the higher complexity, as last measured there, fits again.
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
    /// A rise that holds so long has lasted.
    private static var lastingNanoseconds: Int64 { @_noAllocation @_noLocks get { 5_000_000_000 } }
    /// Windows with a frame later than this show the cost of a backlog, not of calls.
    private static var backlogNanoseconds: Int64 { @_noAllocation @_noLocks get { 20_000_000 } }

    /// The worker's load in the last window.
    private(set) var load: WorkerLoad

    private var windowStart: Instant?
    private var waitedNanoseconds: Int64 = 0
    private var soundNanoseconds: Int64 = 0
    private var worstLatenessNanoseconds: Int64 = 0
    private var changedAt = Instant(nanoseconds: 0)
    private var roseLast = false
    private var settle = LoadGovernor.settleNanoseconds
    /// Shares of the core for one call, by complexity; zero where nothing is known yet.
    private var costs = InlineArray<11, Double>(repeating: 0)

    /// - Parameter costOfCall: Share of a core that a call is expected to take, until calls have been measured.
    init(costOfCall: Double) { load = WorkerLoad(costOfCall: costOfCall) }

    /// The highest complexity that encoders may use now, 0…10.
    var complexityLimit: Int { @_noAllocation @_noLocks get { load.complexityLimit } }

    /// The worker has waited for its next deadline. A wait that ends late counts only up to the deadline.
    @_noAllocation @_noLocks
    mutating func waited(from start: Instant, until deadline: Instant?, wokenAt end: Instant) {
        var idleUntil = end.nanoseconds
        if let deadline { idleUntil = min(idleUntil, max(deadline.nanoseconds, start.nanoseconds)) }
        waitedNanoseconds += max(0, idleUntil - start.nanoseconds)
    }

    /// A frame of this length has been run, so late.
    @_noAllocation @_noLocks
    mutating func ran(frameOf periodNanoseconds: Int64, latenessNanoseconds: Int64) {
        soundNanoseconds += periodNanoseconds
        worstLatenessNanoseconds = max(worstLatenessNanoseconds, latenessNanoseconds)
    }

    /// Whether a window is over, and ``endWindow(at:highestComplexity:)`` is due.
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
    /// - Parameter highestComplexity: What the most demanding encoder is set to; nil if no call's effort can be changed.
    @_noAllocation @_noLocks
    mutating func endWindow(at now: Instant, highestComplexity: Int?) {
        guard let start = windowStart else { return }
        let length = Double(max(1, start.nanoseconds(to: now)))
        load.share = max(0, 1 - Double(waitedNanoseconds) / length)
        load.runningCalls = Double(soundNanoseconds) / length
        let effort = min(load.complexityLimit, highestComplexity ?? 0)
        learnCost(at: effort)
        load.canLower = highestComplexity != nil && effort > 0
        decide(effort, highestComplexity, at: now)
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
        load.complexityLimit = 10
        load.canLower = true
        windowStart = nil
        return true
    }

    @_noAllocation @_noLocks
    private mutating func beginWindow(at now: Instant) {
        windowStart = now
        waitedNanoseconds = 0
        soundNanoseconds = 0
        worstLatenessNanoseconds = 0
    }

    /// A few calls pay for wake-ups that many would share, so their measurement counts less.
    @_noAllocation @_noLocks
    private mutating func learnCost(at effort: Int) {
        guard load.runningCalls > 0, worstLatenessNanoseconds < Self.backlogNanoseconds else { return }
        let cost = load.share / load.runningCalls
        let weight = min(0.4, load.runningCalls / 20)
        load.costOfCall += weight * (cost - load.costOfCall)
        costs[effort] = costs[effort] == 0 ? cost : costs[effort] + weight * (cost - costs[effort])
    }

    @_noAllocation @_noLocks
    private mutating func decide(_ effort: Int, _ highestComplexity: Int?, at now: Instant) {
        let age = changedAt.nanoseconds(to: now)
        if roseLast, age >= Self.lastingNanoseconds {
            roseLast = false
            settle = Self.settleNanoseconds
        }
        if load.share > Self.highMark {
            if load.canLower { lower(from: effort, at: now) }
        } else if load.complexityLimit < 10, age >= settle {
            raise(from: effort, towards: highestComplexity ?? 0, at: now)
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
    private mutating func raise(from effort: Int, towards highest: Int, at now: Instant) {
        let step = Self.step(above: load.complexityLimit)
        let next = min(step, highest)
        // A step that has not been measured can only be tried.
        let expected = next > effort && costs[next] > 0 ? costs[next] * load.runningCalls : load.share
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
    /// Share of time in which the worker did not wait, 0…1.
    public internal(set) var share = 0.0
    /// Calls whose frames it runs: seconds of sound for each second.
    public internal(set) var runningCalls = 0.0
    /// Share of time that one more call takes.
    public internal(set) var costOfCall: Double
    /// The highest complexity that Opus encoders may use now; 10 limits nothing.
    public internal(set) var complexityLimit = 10
    /// Whether a lower complexity than in use is left to make room.
    public internal(set) var canLower = true

    /// That of a worker which has had no call yet.
    @_noAllocation @_noLocks
    public init(costOfCall: Double = 0.02) { self.costOfCall = costOfCall }
}
