internal import Realtime
internal import Core

/// A task that sleeps and then calls, once.
struct WakeTimer {
    private var task: Task<Void, Never>?

    /// Has `wake` called after a delay, in place of what was set before.
    mutating func set(after delay: Duration, _ wake: @escaping @Sendable () async -> Void) {
        cancel()
        task = Task {
            try? await Task.sleep(for: delay)
            if !Task.isCancelled { await wake() }
        }
    }

    /// Has `wake` called at a deadline, in place of what was set before; nil for never.
    mutating func set(at deadline: Instant?, _ wake: @escaping @Sendable () async -> Void) {
        cancel()
        guard let deadline else { return }
        set(after: max(.zero, MonotonicClock.now.duration(to: deadline)), wake)
    }

    mutating func cancel() {
        task?.cancel()
        task = nil
    }
}

/// What a call waits for.
struct CallTimers {
    /// How long a call waits for a peer that has fallen silent.
    private static let silenceLimit = Duration.seconds(25)

    private var machine = WakeTimer()
    private var answer = WakeTimer()
    private var limit = WakeTimer()
    private var end = WakeTimer()
    private var sound = WakeTimer()
    private var watch = WakeTimer()
    private var silence: Task<Void, Never>?

    /// Has `wake` called at the machine's next deadline; nil for never.
    mutating func wakeMachine(at deadline: Instant?, _ wake: @escaping @Sendable () async -> Void) {
        machine.set(at: deadline, wake)
    }

    /// Has `wake` called when the call's peer is looked at next; nil for never.
    mutating func wakeWatch(at deadline: Instant?, _ wake: @escaping @Sendable () async -> Void) {
        watch.set(at: deadline, wake)
    }

    /// Calls `answer` after the answer policy's delay.
    mutating func answer(after delay: Duration, _ answer: @escaping @Sendable () async -> Void) {
        self.answer.set(after: delay, answer)
    }

    /// Has `wake` called when the call has had its longest duration.
    mutating func limit(after duration: Duration, _ wake: @escaping @Sendable () async -> Void) {
        limit.set(after: duration, wake)
    }

    /// Has `hangUp` called after what is still to be heard.
    mutating func hangUp(after delay: Duration, _ hangUp: @escaping @Sendable () async -> Void) {
        end.set(after: delay, hangUp)
    }

    /// Has `wake` called when the peer should have sent something.
    mutating func expectSound(after delay: Duration, _ wake: @escaping @Sendable () async -> Void) {
        sound.set(after: delay, wake)
    }

    /// Whether the peer is silent, and the call waits for it.
    var isPeerSilent: Bool { silence != nil }

    /// The peer has fallen silent: has `restart` called after a delay, and `end` if the peer stays silent.
    mutating func waitForPeer(
        restartAfter delay: Duration, restart: @escaping @Sendable () async -> Void,
        end: @escaping @Sendable () async -> Void
    ) {
        silence = Task {
            try? await Task.sleep(for: delay)
            if !Task.isCancelled { await restart() }
            try? await Task.sleep(for: Self.silenceLimit - delay)
            if !Task.isCancelled { await end() }
        }
    }

    /// The peer is heard again.
    mutating func stopWaitingForPeer() {
        silence?.cancel()
        silence = nil
    }

    mutating func cancelAll() {
        machine.cancel()
        answer.cancel()
        limit.cancel()
        end.cancel()
        sound.cancel()
        watch.cancel()
        stopWaitingForPeer()
    }
}
