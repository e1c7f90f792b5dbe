internal import CallAgent
internal import Core

/// When `handset run` locks its memory for calls, and when it lets go of what only they need. For a program that is idle most
/// of the time, locked code is more than half of what it holds.
struct CallMemory: ProtocolCore {
    enum Input: Sendable {
        /// The program has started and can have calls.
        case ready
        case began(CallID)
        case ended(CallID)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    enum Output: Equatable, Sendable {
        /// Keep in memory what is used from now on.
        case lock
        /// Keep nothing any more, and let go of code and of freed memory.
        case release
    }

    /// What follows a start by itself, such as the first messages of a connection, has ended by then.
    static let settling = Duration.seconds(1)
    /// Calls that follow each other closely find their code where it is.
    static let patience = Duration.seconds(30)

    private var calls: Set<CallID> = []
    private var isLocked = false
    /// When memory is let go of; nil while there are calls, and once that is done.
    private(set) var nextDeadline: Instant?

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .ready: if calls.isEmpty, nextDeadline == nil { nextDeadline = now.advanced(by: Self.settling) }
        case .began(let call):
            calls.insert(call)
            nextDeadline = nil
            guard !isLocked else { return }
            isLocked = true
            outbox.append(.lock)
        case .ended(let call):
            // A call that was never answered has brought code in, too.
            calls.remove(call)
            if calls.isEmpty { nextDeadline = now.advanced(by: Self.patience) }
        case .timerFired:
            guard let deadline = nextDeadline, deadline <= now else { return }
            nextDeadline = nil
            isLocked = false
            outbox.append(.release)
        }
    }
}
