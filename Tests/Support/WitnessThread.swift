import Foundation
import Glibc
import Synchronization
import Core

/// The worst delay of a wake-up since a test began.
public protocol MachineWatch: Sendable {
    /// The longest delay so far.
    var worstDelay: Duration { get }
}

/// The thread of the witness, one for all tests of the process; it runs while at least one of them is watched.
public final class WitnessThread: Sendable {
    private struct State {
        var witnesses: [UInt64: Witness] = [:]
        var lastID: UInt64 = 0
        var isRunning = false
    }

    /// One test's witness, which ends with it.
    private final class Watch: MachineWatch {
        private let thread: WitnessThread
        private let id: UInt64

        init(_ thread: WitnessThread, id: UInt64) { (self.thread, self.id) = (thread, id) }

        deinit { thread.state.withLock { _ = $0.witnesses.removeValue(forKey: id) } }

        var worstDelay: Duration {
            let now = WitnessThread.now
            return thread.state.withLock { $0.witnesses[id]?.worstDelay(at: now) ?? .zero }
        }
    }

    /// The thread that tests use.
    public static let shared = WitnessThread()

    private let state = Mutex(State())

    private init() {}

    /// Whether the thread runs; it ends at its first wake-up without a test.
    public var isRunning: Bool { state.withLock { $0.isRunning } }

    /// Watches from now on until what is returned is released.
    public func watch() -> any MachineWatch {
        let (id, isIdle) = state.withLock { state in
            state.lastID += 1
            state.witnesses[state.lastID] = Witness(at: Self.now)
            defer { state.isRunning = true }
            return (state.lastID, !state.isRunning)
        }
        if isIdle { Thread.detachNewThread { [self] in run() } }
        return Watch(self, id: id)
    }

    private func run() {
        while true {
            let due = Self.now.advanced(by: Witness.period)
            var time = timespec(
                tv_sec: Int(due.nanoseconds / 1_000_000_000), tv_nsec: Int(due.nanoseconds % 1_000_000_000))
            while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
            let now = Self.now
            let goesOn = state.withLock { state in
                state.isRunning = !state.witnesses.isEmpty
                for id in state.witnesses.keys { state.witnesses[id]?.wake(at: now) }
                return state.isRunning
            }
            guard goesOn else { return }
        }
    }

    private static var now: Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
