internal import Realtime
internal import Synchronization

/// The thread on which an engine's ``WarmUpCall`` runs: one at a time, and none once the engine is ending.
final class WarmUpThread: Sendable {
    private struct State {
        var thread: RealtimeThread?
        var isEnded = false
    }

    // Held while a thread is started or waited for, some 10 ms at most, so that `end()` finds every thread that exists.
    private let state = Mutex(State())

    /// Runs `body` on a new thread, once the previous one is done. Does nothing after ``end()``.
    ///
    /// - Returns: False if no thread could be started.
    func begin(_ body: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard !state.isEnded else { return true }
            state.thread?.join()
            state.thread = try? RealtimeThread(name: "media-warm-up", body)
            return state.thread != nil
        }
    }

    /// Waits until nothing runs.
    func wait() { state.withLock { $0.thread?.join() } }

    /// Waits until nothing runs, and prevents new runs.
    func end() {
        state.withLock { state in
            state.isEnded = true
            state.thread?.join()
        }
    }
}
