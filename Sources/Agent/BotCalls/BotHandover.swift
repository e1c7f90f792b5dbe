internal import CallParticipation

/// The hand-overs that a bot's server asks for in one call, and those that it takes back by asking for something else. Pure.
///
/// The device answers each request in its order. So what it reports while a request to take one back is not answered is of a hand-over from
/// before that request, and counts no more.
struct BotHandover: Sendable {
    /// Hand-overs that were asked for, and have neither ended nor come about.
    private var underWay = 0
    /// Requests to take one back that are not answered.
    private var takingBack = 0

    /// A hand-over is asked for.
    mutating func begin() { underWay += 1 }

    /// The bot's server asks for something else.
    ///
    /// - Returns: Whether there is a hand-over to take back.
    mutating func takeBack() -> Bool {
        guard underWay > 0 else { return false }
        underWay = 0
        takingBack += 1
        return true
    }

    /// The device reports a step.
    ///
    /// - Returns: Whether the transfer for which the hand-over was asked has failed.
    mutating func note(_ state: HandoverState) -> Bool {
        switch state {
        case .asked, .ringing, .whispering, .accepted: return false
        case .joined, .gone, .ended:
            if takingBack == 0 { underWay = 0 }
            return false
        case .cancelled where takingBack > 0:
            takingBack -= 1
            return false
        case .refused, .busy, .noAnswer, .failed, .cancelled: return fail()
        }
    }

    /// The device refuses a hand-over.
    ///
    /// - Returns: Whether the transfer has failed.
    mutating func noteRefusal() -> Bool { fail() }

    /// The device has nothing to take back: the hand-over has ended before, or has come about.
    mutating func noteNothingTakenBack() { takingBack = max(0, takingBack - 1) }

    private mutating func fail() -> Bool {
        guard takingBack == 0 else { return false }
        underWay = max(0, underWay - 1)
        return true
    }
}
