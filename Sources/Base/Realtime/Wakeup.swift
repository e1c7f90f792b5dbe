internal import Files
internal import CRealtime
internal import Glibc
public import Core

/// A wake-up that any thread may signal and one waits for: an eventfd.
public struct Wakeup: ~Copyable, Sendable {
    /// The descriptor to poll; readable once signalled.
    public let descriptor: Int32

    /// Opens a wake-up. Fails only when the process has no descriptor left.
    public init() throws(RealtimeError) {
        descriptor = handset_wakeup_open()
        if descriptor < 0 { throw RealtimeError(doing: "opening a wake-up descriptor (eventfd)", errno: -descriptor) }
    }

    deinit { close(descriptor) }

    /// The handle with which other threads signal it. Valid as long as the wake-up lives.
    public var handle: WakeupHandle { WakeupHandle(descriptor: descriptor) }

    /// Wakes the thread that waits. Signals that are not yet seen add up to one.
    public func signal() { handle.signal() }

    /// Takes back all signals seen so far.
    ///
    /// - Returns: Whether there was one.
    @discardableResult
    public func clear() -> Bool { handle.clear() }

    /// Blocks until signalled, or until `timeoutMilliseconds` have passed; then clears.
    public func wait(timeoutMilliseconds: Int32? = nil) {
        let ready = unsafe withUnsafePointer(to: descriptor) {
            unsafe handset_wait_readable($0, 1, timeoutMilliseconds ?? -1)
        }
        if ready > 0 { clear() }
    }
}

/// A plain-value reference to a ``Wakeup`` that another object owns, for the media path.
@frozen
public struct WakeupHandle: BitwiseCopyable, Sendable {
    /// The descriptor to poll; readable once signalled.
    public let descriptor: Int32

    init(descriptor: Int32) { self.descriptor = descriptor }

    /// Wakes the thread that waits. Signals that are not yet seen add up to one.
    @_noAllocation @_noLocks
    public func signal() { signalWakeup(descriptor) }

    /// Takes back all signals seen so far.
    ///
    /// - Returns: Whether there was one.
    @discardableResult
    @_noAllocation @_noLocks
    public func clear() -> Bool { clearWakeup(descriptor) }
}

/// The system refused something a real-time thread needs.
public struct RealtimeError: Error, Sendable, CustomStringConvertible {
    /// The operation that failed.
    public let action: String
    /// The system's error number.
    public let errno: Int32

    /// Whether another socket has that address and port.
    public var isAddressInUse: Bool { errno == EADDRINUSE }

    /// Advice, if it does not follow from `errno`.
    private let hint: String?

    /// Describes a refusal with the system's `errno`.
    public init(doing action: String, errno: Int32) {
        self.action = action
        self.errno = errno
        hint = nil
    }

    init(memoryLockRefused errno: Int32) {
        action = "locking memory (mlockall)"
        self.errno = errno
        hint = " Grant CAP_IPC_LOCK, or set LimitMEMLOCK=infinity in the unit (memlock in limits.conf)."
    }

    /// What was tried, what the system reported, and what to try.
    public var description: String {
        let usualHint =
            switch errno {
            case EMFILE, ENFILE: " Raise the limit on open files (ulimit -n, or LimitNOFILE= in the unit)."
            case EPERM: " Grant CAP_SYS_NICE, or set LimitRTPRIO= in the unit (rtprio in limits.conf)."
            case EADDRINUSE: " Another process has that port; choose another, or 0 for any."
            case ENOSPC: " Raise the limit on watched sockets (sysctl fs.epoll.max_user_watches)."
            case EADDRNOTAVAIL: " No interface of this machine has that address."
            default: ""
            }
        return "\(action) failed: \(SystemError(errno)) (errno \(errno)).\(hint ?? usualHint)"
    }
}

// write(2) on an eventfd: a wait-free system call.
@_semantics("no_performance_analysis") @inline(__always)
private func signalWakeup(_ descriptor: Int32) { _ = handset_wakeup_signal(descriptor) }

// read(2) on a non-blocking eventfd.
@_semantics("no_performance_analysis") @inline(__always)
private func clearWakeup(_ descriptor: Int32) -> Bool { handset_wakeup_clear(descriptor) > 0 }

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
