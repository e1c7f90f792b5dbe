// BlockingWork: threads for calls that block. Swift's own pool has one thread for each core, and all actors and tasks run there: as many
// blocked tasks as cores stop the process.

internal import Realtime
internal import Synchronization

/// Runs work that blocks, such as name lookups, programs and disks, for async code.
///
/// Threads start when they are needed, ``most`` at most, and then wait for more work. Further work waits for a thread, in order; it is
/// bounded by the tasks that wait for it. Work of one kind does not wait for work of another.
public final class BlockingThreads: Sendable {
    /// Looks up names of hosts.
    public static let names = BlockingThreads(name: "names", most: 8)
    /// Runs programs to their end.
    public static let programs = BlockingThreads(name: "run-programs", most: 8)
    /// Reads what logins need, which nothing else may hold up.
    public static let credentials = BlockingThreads(name: "credentials", most: 8)
    /// Writes records of calls.
    public static let records = BlockingThreads(name: "records", most: 8)
    /// Reads and writes other files.
    public static let files = BlockingThreads(name: "files", most: 8)

    private typealias Job = @Sendable () -> Void

    private struct State {
        var waiting: [Job] = []
        var threads = 0
        /// Threads that wait and have not been woken.
        var idle: [Sleeper] = []
    }

    /// What wakes one thread.
    private final class Sleeper: Sendable {
        let wakeup: Wakeup

        init() throws(RealtimeError) { wakeup = try Wakeup() }
    }

    /// Maximum number of threads.
    public let most: Int
    private let name: String
    private let state = Mutex(State())

    /// Makes threads for one kind of work, for as long as the process runs: they do not end.
    public init(name: String, most: Int) {
        precondition(most > 0, "work needs a thread")
        self.name = name
        self.most = most
    }

    /// Runs `work` on one of the threads. It is not cancelled with the task.
    public func run<Value: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            add { continuation.resume(returning: Result(catching: work)) }
        }
        return try result.get()
    }

    /// Work that waits for a thread.
    var waiting: Int { state.withLock { $0.waiting.count } }

    private func add(_ job: @escaping Job) {
        let (idle, needsThread): (Sleeper?, Bool) = state.withLock { state in
            state.waiting.append(job)
            if let idle = state.idle.popLast() { return (idle, false) }
            guard state.threads < most else { return (nil, false) }
            state.threads += 1
            return (nil, true)
        }
        idle?.wakeup.signal()
        if needsThread { start() }
    }

    /// Starts a thread. Without any thread the caller does the work: late is better than never.
    private func start() {
        do throws(RealtimeError) {
            let sleeper = try Sleeper()
            // Not joined: work that never returns must not keep the process from ending.
            _ = try RealtimeThread(name: name, stackBytes: 1 << 20) { [self] in
                while true {
                    if let job = next(sleeper) { job() } else { sleeper.wakeup.wait() }
                }
            }
        } catch {
            state.withLock { $0.threads -= 1 }
            while let job = nextWithoutThread() { job() }
        }
    }

    private func nextWithoutThread() -> Job? {
        state.withLock { $0.threads == 0 && !$0.waiting.isEmpty ? $0.waiting.removeFirst() : nil }
    }

    /// The next work of a thread; nil if it has to wait until it is woken.
    private func next(_ sleeper: Sleeper) -> Job? {
        state.withLock { state in
            // A thread may wake up without work.
            state.idle.removeAll { $0 === sleeper }
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.idle.append(sleeper)
            return nil
        }
    }
}
