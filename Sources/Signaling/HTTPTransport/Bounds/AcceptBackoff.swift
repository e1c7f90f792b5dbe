/// What to do when a connection that waits cannot be accepted, because the process or the machine has no descriptor for
/// it.
///
/// With a descriptor in reserve a few clients at a time are refused at once: the reserve is released, the connection
/// accepted and closed, and the reserve opened again. Then, and without a reserve, nothing is accepted for a while: the
/// socket stays readable, so that trying again at once would take a whole core and change nothing.
package struct AcceptBackoff: Hashable, Sendable {
    /// What to do.
    package enum Step: Hashable, Sendable {
        /// Give up the reserve, and close the connection that comes next.
        case shed
        /// Accept nothing for this duration.
        case pause(Duration)
    }

    /// Clients that are refused between two pauses.
    package static let burst = 32
    package static let shortest = Duration.milliseconds(100)
    package static let longest = Duration.seconds(1)

    private var shed = 0
    private var pause = shortest

    /// Begins as if all connections had been accepted.
    package init() {}

    /// A connection could not be accepted.
    ///
    /// - Parameter hasReserve: Whether there is a descriptor in reserve.
    package mutating func failed(hasReserve: Bool) -> Step {
        if hasReserve, shed < Self.burst {
            shed += 1
            return .shed
        }
        shed = 0
        defer { pause = min(pause * 2, Self.longest) }
        return .pause(pause)
    }

    /// A connection was accepted, and there was a descriptor for it.
    package mutating func succeeded() { self = AcceptBackoff() }
}
