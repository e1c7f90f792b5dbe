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
