internal import CRealtime
internal import Glibc
internal import Synchronization

/// A thread of our own, which runs one closure to its end.
///
/// The owner must call ``join()``; the closure decides when to return.
public final class RealtimeThread: Sendable {
    private let thread: Mutex<pthread_t?>

    /// Starts a thread.
    ///
    /// - Parameters:
    ///   - name: Shown by `ps -L` and debuggers; cut to 15 bytes.
    ///   - stackBytes: Size of its stack. Opus's encoder needs about 100 kB of it.
    ///   - body: What it runs. Make it real-time with ``makeCurrentRealtime(priority:)``.
    public init(name: String, stackBytes: Int = 512 * 1024, _ body: @escaping @Sendable () -> Void)
        throws(RealtimeError)
    {
        let context = unsafe Unmanaged.passRetained(Body(body))
        var handle = pthread_t()
        let result = unsafe handset_thread_start(
            &handle, name, stackBytes,
            { argument in
                guard let argument = unsafe argument else { return }
                unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
            }, context.toOpaque())
        guard result == 0 else {
            unsafe context.release()
            throw RealtimeError(doing: "starting the thread \"\(name)\"", errno: -result)
        }
        thread = Mutex(handle)
    }

    /// Waits until the thread's closure has returned. Later calls return at once.
    public func join() {
        let handle = thread.withLock { handle in
            defer { handle = nil }
            return handle
        }
        if let handle { _ = handset_thread_join(handle) }
    }

    /// Gives the calling thread SCHED_FIFO at `priority` (1…99, higher first).
    public static func makeCurrentRealtime(priority: Int32) throws(RealtimeError) {
        let result = handset_thread_make_realtime(priority)
        guard result == 0 else {
            throw RealtimeError(doing: "asking for real-time priority \(priority) (SCHED_FIFO)", errno: -result)
        }
    }

    /// Suspends the calling thread's real-time priority, if it has one. Used for work that may take long and that no
    /// thread waits for, such as looking for a card that is not there. A priority that the process was started with and
    /// may not request stays, because it could not be restored.
    ///
    /// - Returns: The argument of ``resumePriority(_:)``.
    public static func suspendPriority() -> SuspendedPriority {
        SuspendedPriority(value: handset_thread_suspend_priority())
    }

    /// Restores the calling thread's priority that ``suspendPriority()`` took.
    public static func resumePriority(_ priority: SuspendedPriority) {
        handset_thread_resume_priority(priority.value)
    }

    /// A real-time priority that a thread does without for a while, or none.
    public struct SuspendedPriority: Sendable {
        fileprivate let value: handset_priority
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
}
