internal import Synchronization

/// Waits, without blocking a thread, until the process is asked to end.
final class EndRequest: Sendable {
    private struct State {
        var isMade = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Listens to the process's signals from now on.
    ///
    /// - Parameter moreSeconds: What the end may take beyond ``Shutdown/graceSeconds``.
    init(moreSeconds: Int = 0) { Shutdown.onFirstSignal(moreSeconds: moreSeconds) { [weak self] in self?.make() } }

    /// Whether the process has been asked to end.
    var isMade: Bool { state.withLock { $0.isMade } }

    /// Returns when the process is asked to end, or has been.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isMade = state.withLock { state in
                if !state.isMade { state.waiters.append(continuation) }
                return state.isMade
            }
            if isMade { continuation.resume() }
        }
    }

    /// Resumes all waiters.
    func make() {
        let waiters = state.withLock { state in
            state.isMade = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
