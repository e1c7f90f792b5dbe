internal import Core
internal import Realtime

/// A task that sleeps and then calls, once.
struct WakeTimer {
    private var task: Task<Void, Never>?

    /// Has `wake` called at a deadline, in place of what was set before; nil for never.
    mutating func set(at deadline: Instant?, _ wake: @escaping @Sendable () async -> Void) {
        cancel()
        guard let deadline else { return }
        let delay = max(.zero, MonotonicClock.now.duration(to: deadline))
        task = Task {
            try? await Task.sleep(for: delay)
            if !Task.isCancelled { await wake() }
        }
    }

    mutating func cancel() {
        task?.cancel()
        task = nil
    }
}

extension [Task<Void, Never>] {
    /// Waits for all of them, at most for `limit`; those that need longer continue.
    func wait(within limit: Duration) async {
        guard !isEmpty else { return }
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let patience = Task<Void, Never> {
            try? await Task<Never, Never>.sleep(for: limit)
            end.finish()
        }
        Task<Void, Never> {
            for task in self { await task.value }
            end.finish()
        }
        for await _ in ends {}
        patience.cancel()
    }
}
