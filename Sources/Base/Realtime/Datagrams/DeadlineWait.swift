internal import CRealtime
public import Core

/// A wait for an absolute time together with descriptors, in one system call: what paces a media worker.
public enum DeadlineWait {
    /// The reason for the end of a wait.
    @frozen
    public struct Outcome: BitwiseCopyable, Sendable {
        /// The wake-up was signalled, and is to be cleared.
        public let isSignalled: Bool
        /// The socket has datagrams.
        public let isReadable: Bool
    }

    /// Waits until `deadline` has come, `wakeup` is signalled, or `socket` is readable.
    ///
    /// - Parameters:
    ///   - deadline: nil waits without end.
    ///   - wakeup: Ends the wait when it is signalled.
    ///   - socket: Descriptor of a socket, or nil to leave its datagrams until the deadline.
    @_noAllocation @_noLocks
    public static func wait(until deadline: Instant?, wakeup: WakeupHandle, socket: Int32?) -> Outcome {
        // A time before the clock's origin is as long past as the origin.
        var time: Int64 = -1
        if let deadline { time = max(deadline.nanoseconds, 0) }
        let mask = waitForAny(time, wakeup.descriptor, socket ?? -1)
        return Outcome(isSignalled: mask > 0 && mask & 1 != 0, isReadable: mask > 0 && mask & 2 != 0)
    }
}

// ppoll(2): the thread's own wait.
@_semantics("no_performance_analysis") @inline(__always)
private func waitForAny(_ deadline: Int64, _ wakeup: Int32, _ socket: Int32) -> Int32 {
    handset_wait_until(deadline, wakeup, socket)
}
