/// The part that programs, bots and ports have in a call, one after the other.
struct Participation {
    private enum State {
        case none, present, left
    }

    private var state = State.none
    /// Participants that were asked to leave, and whose events may still come.
    private var leaving = 0

    /// Whether one takes part.
    var isPresent: Bool { state == .present }

    /// Whether events are of one that was detached, so that they do not count.
    var hasLeft: Bool { state == .left || leaving > 0 }

    mutating func joined() { state = .present }

    /// The one that takes part is asked to leave.
    mutating func detach() {
        state = .left
        leaving += 1
    }

    /// One that could not begin is asked to leave.
    mutating func joiningFailed() { leaving += 1 }

    /// One of those has left.
    mutating func noteLeft() { leaving = max(0, leaving - 1) }
}
