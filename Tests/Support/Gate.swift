import Foundation

/// Blocks threads until a test opens it. A thread passes after half a minute anyway, so that a program without a free thread fails its
/// test and does not stop the others.
public final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var isOpen = false
    private var count = 0

    /// A closed gate.
    public init() {}

    /// Threads that have come so far.
    public var arrived: Int { condition.withLock { count } }

    /// Blocks the thread.
    ///
    /// - Returns: Whether the gate was opened; false if the time has passed.
    public func pass() -> Bool {
        let limit = Date(timeIntervalSinceNow: 30)
        return condition.withLock {
            count += 1
            while !isOpen { guard condition.wait(until: limit) else { return isOpen } }
            return true
        }
    }

    /// From now on, all threads pass.
    public func open() {
        condition.withLock {
            isOpen = true
            condition.broadcast()
        }
    }
}
