package import Core
package import NIOCore

/// Runs something at one time, which may be changed. Lives on its event loop.
package final class DeadlineTimer {
    private let loop: any EventLoop
    private var planned: (due: Instant, scheduled: Scheduled<Void>)?

    /// Makes a timer that is not set.
    package init(on loop: any EventLoop) { self.loop = loop }

    /// Runs `action` at `due`, and no longer at the time before; `nil` means never.
    package func set(_ due: Instant?, _ action: @escaping () -> Void) {
        guard due != planned?.due else { return }
        cancel()
        planned = due.map { due in
            let scheduled = loop.assumeIsolated().scheduleTask(deadline: NIODeadline(due)) { [weak self] in
                guard let self else { return }
                planned = nil
                action()
            }
            return (due, scheduled)
        }
    }

    /// Runs nothing.
    package func cancel() {
        planned?.scheduled.cancel()
        planned = nil
    }
}

/// One timer on an event loop for all deadlines of a driver, which is woken at them or earlier: that does no harm, and a deadline that
/// moves away with each packet sets no new timer.
package struct WakeUpTimer {
    private let loop: any EventLoop
    private var task: Scheduled<Void>?
    private var due: Instant?

    /// Makes a timer that is not set.
    package init(on loop: any EventLoop) { self.loop = loop }

    /// Calls `work` at `next`, or earlier if it is set already; `nil` means never.
    package mutating func set(_ next: Instant?, _ work: @autoclosure () -> @Sendable () -> Void) {
        guard let next else { return cancel() }
        if let due, due <= next { return }
        task?.cancel()
        due = next
        task = loop.scheduleTask(deadline: NIODeadline(next), work())
    }

    /// The timer has fired.
    package mutating func clear() { (task, due) = (nil, nil) }

    private mutating func cancel() {
        task?.cancel()
        clear()
    }
}

extension NIODeadline {
    /// The same time on an event loop's clock.
    package init(_ instant: Instant) { self = .uptimeNanoseconds(UInt64(clamping: instant.nanoseconds)) }
}

extension Instant {
    /// The same time as a core has it.
    package init(_ deadline: NIODeadline) { self.init(nanoseconds: Int64(clamping: deadline.uptimeNanoseconds)) }
}
