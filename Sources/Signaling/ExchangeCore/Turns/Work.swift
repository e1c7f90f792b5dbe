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
