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

    /// Whether something went wrong: the call could not be set up, or was lost.
    public var isFailure: Bool {
        switch self {
        case .completed, .declined, .busy, .noAnswer, .cancelled, .acceptedElsewhere, .declinedElsewhere: false
        case .dialFailed, .acceptFailed, .connectionLost, .disconnected, .internalError: true
        }
    }
}

/// The reason of a rejection, as the inviter receives it.
public enum RejectReason: String, CaseIterable, Hashable, Sendable {
    /// The user or the policy said no.
    case declined
    /// The device is at its call limit (contract INV-11).
    case busy
    /// The device could not answer: no common codec, no free port and the like.
    case failed
    /// The device's ring limit passed without a decision (contract INV-9).
    case noAnswer
}

extension RejectReason {
    /// How the inviter's call ends on hearing this.
    public var endOfOutgoingCall: CallEndReason {
        switch self {
        case .declined: .declined
        case .busy: .busy
        case .failed: .dialFailed
        case .noAnswer: .noAnswer
        }
    }

    /// How the invitee's own call ends on saying this.
    public var endOfIncomingCall: CallEndReason {
        switch self {
        case .declined: .declined
        case .busy: .busy
        case .failed: .acceptFailed
        case .noAnswer: .noAnswer
        }
    }
}

/// What a rejection says.
public struct InviteRejection: Hashable, Sendable {
    /// The reason.
    public var reason: RejectReason
    /// Why the device could not answer, if it says so.
    public var cause: CallFailureCause?

    /// Makes one.
    public init(_ reason: RejectReason, cause: CallFailureCause? = nil) {
        self.reason = reason
        self.cause = cause
    }
}
