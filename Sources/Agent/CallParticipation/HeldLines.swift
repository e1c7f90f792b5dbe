public import AudioPort
internal import Synchronization

/// Lines of calls whose media has not started, each of which is taken once.
public final class HeldLines: Sendable {
    private let lines = Mutex<[CallID: HeldLine]>([:])

    private final class HeldLine: Sendable {
        let line: Mutex<PortLine?>

        init(_ line: consuming PortLine) { self.line = Mutex(line) }
    }

    /// Holds none.
    public init() {}

    /// Holds a call's line. An earlier one of the call is dropped.
    public func hold(_ line: consuming PortLine, of call: CallID) {
        let held = HeldLine(line)
        lines.withLock { $0[call] = held }
    }

    /// Takes a call's line; nil if there is none.
    public func take(of call: CallID) -> PortLine? {
        lines.withLock { $0.removeValue(forKey: call) }?.line.withLock { $0.take() }
    }

    /// Drops a call's line.
    public func drop(of call: CallID) { lines.withLock { $0[call] = nil } }
}
