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

extension EndRequest {
    /// Connects something, and shuts it down if the process is asked to end meanwhile: a server that does not answer
    /// delays no end.
    ///
    /// - Parameters:
    ///   - connect: Ends early when `shutDown` is called.
    ///   - shutDown: May be called more than once.
    /// - Returns: Whether it is connected. If the process was asked to end, also at the instant at which `connect`
    ///   returns or throws, it is shut down.
    /// - Throws: What `connect` throws, unless the process was asked to end.
    func connect<Failure: Error>(
        _ connect: @escaping @Sendable () async throws(Failure) -> Void,
        shutDown: @escaping @Sendable () async -> Void
    ) async throws(Failure) -> Bool {
        let connecting = Task { () -> Failure? in
            do throws(Failure) {
                try await connect()
                return nil
            } catch {
                return error
            }
        }
        let watching = Task {
            await wait()
            if !Task.isCancelled { await shutDown() }
        }
        let failure = await connecting.value
        watching.cancel()
        if isMade {
            await watching.value
            // The task may have been cancelled at the instant at which it woke, and has then shut nothing down.
            await shutDown()
            return false
        }
        if let failure { throw failure }
        return true
    }
}
