import NIOCore
import Core

/// Runs something at one time, which may be changed. Lives on its event loop.
final class DeadlineTimer {
    private let loop: any EventLoop
    private var planned: (due: Instant, scheduled: Scheduled<Void>)?

    init(on loop: any EventLoop) { self.loop = loop }

    /// Runs `action` at `due`, and no longer at the time before; `nil` means never.
    func set(_ due: Instant?, _ action: @escaping () -> Void) {
        guard due != planned?.due else { return }
        cancel()
        planned = due.map { due in
            let deadline = NIODeadline.uptimeNanoseconds(UInt64(clamping: due.nanoseconds))
            let scheduled = loop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
                guard let self else { return }
                planned = nil
                action()
            }
            return (due, scheduled)
        }
    }

    func cancel() {
        planned?.scheduled.cancel()
        planned = nil
    }
}
