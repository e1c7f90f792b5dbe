public import JSON

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
    /// The data of a reject that says this: an object with the key `reason`.
    public var data: JSONValue { data(cause: nil) }

    /// The same with the key `cause`, if there is one.
    public func data(cause: CallFailureCause?) -> JSONValue {
        let data: JSONValue = ["reason": .string(rawValue)]
        return cause.map { data.setting("cause", to: .string($0.rawValue)) } ?? data
    }

    /// Reads the data of a reject; without a reason that we know it was declined.
    public init(data: JSONValue) { self = data["reason"]?.string.flatMap(RejectReason.init(rawValue:)) ?? .declined }

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
