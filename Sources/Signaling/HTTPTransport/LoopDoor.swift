package import NIOCore
internal import Synchronization

/// The way of other threads to an event loop that ends before the process does: an event loop that has ended must not be given work.
package final class LoopDoor: Sendable {
    /// `nil` once it is closed.
    private let loop: Mutex<(any EventLoop)?>

    /// Makes a door that is open.
    package init(to loop: any EventLoop) { self.loop = Mutex(loop) }

    /// Runs `work` on the event loop; drops it once the door is closed.
    package func execute(_ work: @escaping @Sendable () -> Void) {
        // Within the lock: what closes the door may end the event loop at once.
        loop.withLock { $0?.execute(work) }
    }

    /// Lets nothing more through. What has come through still runs. Call it before the event loop is shut down.
    package func close() { loop.withLock { $0 = nil } }
}
