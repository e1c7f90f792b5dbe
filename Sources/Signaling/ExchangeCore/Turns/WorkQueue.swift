/// The ``FairQueue`` of an exchange, whose members these are.
///
/// It is a class of this module because the compiler (Swift 6.3) neither specializes a generic type that another module
/// uses, nor lets another module look at a structure in an object without copying it.
package final class WorkQueue {
    package typealias Queue = FairQueue<Payer, WorkLine, Work>

    private var queue: Queue

    package init(_ limits: Queue.Limits) { queue = Queue(limits) }

    package var limits: Queue.Limits { queue.limits }
    package var isEmpty: Bool { queue.isEmpty }
    package var isServing: Bool { queue.isServing }
    package var bytes: Int { queue.bytes }

    package func payer(of line: WorkLine) -> Payer? { queue.payer(of: line) }
    package func mustWait(_ payer: Payer) -> Bool { queue.mustWait(payer) }

    package func enqueue(
        _ work: Work, bytes: Int, weight: Int, on line: WorkLine, of payer: Payer, isOptional: Bool
    ) -> Queue.Admission {
        queue.enqueue(work, bytes: bytes, weight: weight, on: line, of: payer, isOptional: isOptional)
    }

    package func serveAtOnce(_ payer: Payer, weight: Int) -> Bool { queue.serveAtOnce(payer, weight: weight) }
    package func beginRound(after rounds: Int = 1) { queue.beginRound(after: rounds) }
    package func next() -> Work? { queue.next() }
    package func charge(_ cost: Int) { queue.charge(cost) }
    package func fine(_ payer: Payer, _ cost: Int) { queue.fine(payer, cost) }
    package func pause(_ line: WorkLine, of payer: Payer) -> Bool { queue.pause(line, of: payer) }
    package func takeResumed() -> [WorkLine] { queue.takeResumed() }
}

/// What may have to wait for its turn.
package enum Work {
    /// A message as it came in. It is read when it is served, so that what waits takes up no more than it did on the wire.
    case message([UInt8], ConnectionID)
    /// What was read, and what that cost.
    case input(ExchangeCore.Input, WorkCost)
    /// A request over HTTP, with what has been done for it.
    case task(WorkCost, () -> Void)

    /// What it has cost so far.
    package var cost: WorkCost {
        switch self {
        case .message(let bytes, _): WorkCost(messageBytes: bytes.count)
        case .input(_, let cost), .task(let cost, _): cost
        }
    }
}
