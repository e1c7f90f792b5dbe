import NIOCore
import NIOPosix

/// Checks passwords, and changes the users file, on a thread of its own: each takes about a tenth of a second.
///
/// Capacity: ``capacity`` jobs that run or wait; past it none begins, and its client receives a time to retry. Lives on
/// one event loop.
final class PasswordThread {
    static let capacity = 32

    private let thread: NIOThreadPool
    private let loop: any EventLoop
    private var jobs = 0

    init(_ thread: NIOThreadPool, loop: any EventLoop) {
        self.thread = thread
        self.loop = loop
    }

    /// Begins a job, which may run several times until ``end()``. False if there are too many.
    func begin() -> Bool {
        guard jobs < Self.capacity else { return false }
        jobs += 1
        return true
    }

    func end() { jobs -= 1 }

    /// Does a part of a job on the thread, and hands its result to the event loop.
    func run<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value, then: @escaping (Result<Value, any Error>) -> Void
    ) {
        thread.runIfActive(eventLoop: loop, work).assumeIsolated().whenComplete(then)
    }
}
