/// Why a call ended; each call has exactly one (contract CALL-5).
public enum CallEndReason: String, CaseIterable, Hashable, Sendable {
    /// It was established and one side hung up.
    case completed
    /// The invitee declined.
    case declined
    /// The invitee's device was at its call limit.
    case busy
    /// The invite expired without an answer.
    case noAnswer
    /// The caller took the invite back, or one side hung up before the call was established.
    case cancelled
    /// Another device of this user answered.
    case acceptedElsewhere
    /// Another device of this user declined.
    case declinedElsewhere
    /// The calling side could not set the call up.
    case dialFailed
    /// The answering side could not set the call up.
    case acceptFailed
    /// Media was lost and did not come back.
    case connectionLost
    /// A side disconnected from the service on purpose.
    case disconnected
    /// This program failed in a way that has no better name.
    case internalError
}

extension CallEndReason {
    /// Whether the call took place: it was established and one side hung up.
    public var isSuccess: Bool { self == .completed }
}
