/// How much of a call's sound waits to be sent to the other half of its pair.
///
/// Both halves run by one clock, so that what waits does not grow by itself. It grows when this process is late: then the other half
/// plays silence meanwhile, and all that follows would be late for the rest of the call. What is beyond ``most`` is left out.
struct BridgeQueuePolicy {
    /// What is to be done with a frame.
    enum Decision: Equatable {
        /// Send it, after this number of samples of silence.
        case send(after: Int)
        /// Leave it out.
        case drop
    }

    /// Silence before the first frame, and after what waited was used up.
    let start: Int
    let most: Int
    /// Frames that were left out.
    private(set) var dropped = 0

    init(rate: Int) {
        start = rate * 40 / 1_000
        most = rate * 120 / 1_000
    }

    /// - Parameter waiting: Samples that wait now.
    mutating func decide(frame: Int, waiting: Int) -> Decision {
        if waiting == 0 { return .send(after: start) }
        guard waiting + frame > most else { return .send(after: 0) }
        dropped += 1
        return .drop
    }
}
