internal import CRealtime
public import Realtime
public import Timekeeping

/// A timer for absolute times, and a wait on it together with other descriptors: what paces a media worker.
public struct DeadlineTimer: ~Copyable, Sendable {
    private let descriptor: Int32

    /// Opens a disarmed timer.
    public init() throws(RealtimeError) {
        descriptor = handset_timer_open()
        if descriptor < 0 { throw RealtimeError(doing: "opening a timer (timerfd)", errno: -descriptor) }
    }

    deinit { handset_close(descriptor) }

    /// Waits until `deadline` has come, `wakeup` is signalled, or `socket` is readable.
    ///
    /// - Parameters:
    ///   - deadline: nil waits without end.
    ///   - wakeup: Ends the wait when it is signalled.
    ///   - socket: Descriptor of a socket, or nil to let its datagrams wait for the deadline.
    @_noAllocation @_noLocks
    public func wait(until deadline: Instant?, wakeup: WakeupHandle, socket: Int32?) {
        // An absolute time of zero would disarm the timer; one nanosecond is as long past.
        var time: Int64 = 0
        if let deadline { time = deadline.nanoseconds > 1 ? deadline.nanoseconds : 1 }
        waitForAny(descriptor, time, wakeup.descriptor, socket ?? -1)
    }
}

// timerfd_settime(2) and poll(2): the thread's own timer and wait.
@_semantics("no_performance_analysis") @inline(__always)
private func waitForAny(_ timer: Int32, _ deadline: Int64, _ wakeup: Int32, _ socket: Int32) {
    _ = handset_wait_until(timer, deadline, wakeup, socket)
}
