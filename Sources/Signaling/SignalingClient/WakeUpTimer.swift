internal import NIOCore
internal import Core

/// One timer on an event loop for all deadlines of a driver.
struct WakeUpTimer {
    private let loop: any EventLoop
    private var task: Scheduled<Void>?
    private var due: Instant?

    init(on loop: any EventLoop) { self.loop = loop }

    /// Calls `work` at `next`, or earlier if it is set already: to be woken too early does no harm.
    mutating func set(_ next: Instant?, _ work: @autoclosure () -> @Sendable () -> Void) {
        guard let next else { return cancel() }
        if let due, due <= next { return }
        task?.cancel()
        due = next
        let deadline = NIODeadline.uptimeNanoseconds(UInt64(clamping: next.nanoseconds))
        task = loop.scheduleTask(deadline: deadline, work())
    }

    /// The timer has fired.
    mutating func clear() { (task, due) = (nil, nil) }

    private mutating func cancel() {
        task?.cancel()
        clear()
    }
}
