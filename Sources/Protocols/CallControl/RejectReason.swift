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
