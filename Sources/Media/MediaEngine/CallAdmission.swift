/// Decides whether media workers have room for one more call; a pure function of their loads except for its hysteresis.
///
/// A call is admitted while the expected load, including that call and admitted calls that the measured load does not
/// contain yet, stays below a mark. The mark is higher while encoders can still spend less effort: the worker lowers
/// the effort within a quarter of a second, before a frame is lost. After a refusal the mark is lower, so that a full
/// device does not alternately accept and refuse calls.
struct CallAdmission {
    /// The mark while a lower complexity is left: the last step, to 0, saves a sixth (`Benchmarks/Instructions`).
    static let lowerableMark = 1.0
    /// By how much the mark falls after a refusal, until there is room again.
    static let hysteresis = 0.08

    /// The state of one worker.
    struct Worker {
        var load: WorkerLoad
        /// Calls that were placed on it and have not ended.
        var calls: Int
        /// Calls that it has memory for.
        var capacity: Int
    }

    /// Whether the last call that asked was refused.
    private(set) var isFull = false

    /// Whether one more call fits.
    ///
    /// - Parameters:
    ///   - streams: What the call takes: one, or two if it has another leg.
    ///   - unplaced: Streams of calls that have been admitted and are on no worker yet.
    mutating func admits(_ workers: [Worker], streams: Int = 1, unplaced: Int) -> Bool {
        let room = workers.reduce(0) { $0 + Self.room(on: $1, isFull: isFull) }
        isFull = room < unplaced + streams
        return !isFull
    }

    /// Further calls that fit on a worker.
    static func room(on worker: Worker, isFull: Bool) -> Int {
        let load = worker.load
        let mark = (load.canLower ? lowerableMark : LoadGovernor.highMark) - (isFull ? hysteresis : 0)
        let unmeasured = max(0, Double(worker.calls) - load.runningCalls)
        let room = (mark - load.share) / max(load.costOfCall, 0.000_1) - unmeasured
        return max(0, min(Int(max(0, min(room, 100_000))), worker.capacity - worker.calls))
    }
}
