public import AudioPort
public import CallParticipation
public import Core
internal import Realtime
internal import Synchronization

/// One call that ``CallRuns`` serves.
public protocol CallRun: AnyObject, Sendable {
    /// The call.
    var call: CallID { get }
    /// Whether it has left its call, and needs no more service.
    var isDone: Bool { get }
    /// When ``tick(at:)`` is due without anything happening; nil if never.
    var nextDeadline: Instant? { get }
    /// Does what is due. Called on the calls' thread alone.
    func tick(at now: Instant)
}

/// The calls of a participant, and the one thread that moves their sound.
///
/// The thread starts with the first call, and sleeps without calls. All methods may be called from any thread.
public final class CallRuns<Run: CallRun>: Sendable {
    private struct Table {
        var runs: [CallID: Run] = [:]
        /// Runs that have ended, or whose call has another one, and have not noticed that.
        var leaving: [Run] = []
        var isFinished = false
    }

    /// The thread, and what wakes it.
    private struct Server {
        let signal: PortSignal
        let thread: RealtimeThread
    }

    private let threadName: String
    private let table = Mutex(Table())
    private let server = Mutex<Server?>(nil)

    /// Prepares for calls.
    ///
    /// - Parameter threadName: The name of the thread.
    public init(threadName: String) { self.threadName = threadName }

    /// Starts the thread, if it does not run.
    ///
    /// - Returns: What wakes it, which the ports of its calls signal.
    public func start() throws -> PortSignal {
        try server.withLock { server throws(RealtimeError) in
            if let server { return server.signal }
            let signal = try PortSignal()
            let thread = try RealtimeThread(name: threadName) { [self] in serve(signal) }
            server = Server(signal: signal, thread: thread)
            return signal
        }
    }

    /// Serves a call from now on.
    ///
    /// - Returns: An earlier run of the call, which leaves.
    public func begin(_ run: Run) -> Run? {
        let earlier = table.withLock { table in
            let earlier = table.runs.updateValue(run, forKey: run.call)
            if let earlier { table.leaving.append(earlier) }
            return earlier
        }
        server.withLock { $0?.signal.signal() }
        return earlier
    }

    /// The run of a call; nil if there is none.
    public func run(of call: CallID) -> Run? { table.withLock { $0.runs[call] } }

    /// Has the run of a call leave: it is served until it is done.
    ///
    /// - Returns: The run; nil if there is none.
    public func remove(_ call: CallID) -> Run? {
        table.withLock { table in
            let run = table.runs.removeValue(forKey: call)
            if let run { table.leaving.append(run) }
            return run
        }
    }

    /// Ends all runs and the thread.
    ///
    /// - Parameter end: Ends a run, so that it is done with its next tick.
    public func finish(_ end: (Run) -> Void) {
        table.withLock { table in
            for run in table.runs.values { end(run) }
            table.leaving += table.runs.values
            table.runs = [:]
            table.isFinished = true
        }
        let last = server.withLock { server in
            defer { server = nil }
            return server
        }
        last?.signal.signal()
        last?.thread.join()
    }

    // MARK: The thread

    /// Milliseconds for which the thread waits for a frame while there are calls.
    private var longestWait: Int32 { 100 }

    private func serve(_ signal: PortSignal) {
        while true {
            signal.wait(timeoutMilliseconds: patience())
            let now = MonotonicClock.now
            let (runs, isFinished) = table.withLock { (Array($0.runs.values) + $0.leaving, $0.isFinished) }
            for run in runs { run.tick(at: now) }
            table.withLock { $0.leaving.removeAll { $0.isDone || isFinished } }
            if isFinished { return }
        }
    }

    /// How long the thread waits unless it is woken; nil without calls.
    private func patience() -> Int32? {
        let runs = table.withLock { Array($0.runs.values) + $0.leaving }
        guard !runs.isEmpty else { return nil }
        let now = MonotonicClock.now
        let next = runs.compactMap(\.nextDeadline).min().map { now.duration(to: $0).milliseconds.rounded(.up) }
        return Int32(max(1, min(Double(longestWait), next ?? .infinity)))
    }
}
