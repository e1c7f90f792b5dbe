public import CallControl

/// Why a trunk does not carry a call.
public enum TrunkRefusal: String, CaseIterable, Hashable, Sendable {
    /// It did not come from the exchange with a number that a user has dialled, or not with one at all.
    case notAllowed
    /// No route leads where it was dialled.
    case noRoute
    /// The trunk carries as many calls as `max_calls` allows.
    case full
    /// The operator has new calls refused.
    case draining

    /// What the caller learns.
    var reason: RejectReason {
        switch self {
        case .notAllowed, .noRoute: .declined
        case .full, .draining: .busy
        }
    }
}

/// What a trunk has counted since it began.
public struct TrunkCounters: Hashable, Sendable {
    /// Calls that it has carried, or tried to.
    public internal(set) var calls = 0
    /// Those of them that were answered.
    public internal(set) var answered = 0
    /// Calls that it has refused.
    public internal(set) var refused: [TrunkRefusal: Int] = [:]
}

/// Who is in a call of a trunk.
public struct TrunkParties: Hashable, Sendable {
    /// Who calls: a user of the exchange, or what the network says.
    public let from: String
    /// What the caller calls itself.
    public let name: String?
    /// What was dialled.
    public let dialled: String
    /// The callee on the other side.
    public let to: UserID
}

/// A call of a trunk, both halves together, at some moment.
public struct TrunkCallState: Hashable, Sendable {
    /// How far a call is.
    public enum Progress: Hashable, Sendable {
        /// The other half is being placed, or rings.
        case calling
        /// The callee has answered.
        case answered
        /// Both hear each other.
        case talking
        /// It is being ended.
        case ending
    }

    /// Its number, which no other call of the trunk has.
    public let number: UInt64
    /// The half that came in.
    public let origin: TrunkLeg
    /// The half that was placed; nil until it is.
    public let target: TrunkLeg?
    /// Who is in it.
    public let parties: TrunkParties
    /// How far it is.
    public let progress: Progress
    /// Since it came in.
    public let age: Duration
    /// Since both hear each other; nil before.
    public let talk: Duration?
}

/// How a call of a trunk ended.
public struct TrunkCallEnd: Hashable, Sendable {
    /// Why the half that ended first did.
    public let reason: CallEndReason
    /// The side of that half; nil if the operator has ended the call.
    public let endedBy: TrunkSide?
    /// How long both heard each other; nil if they did not.
    public let talk: Duration?
}

/// What has happened at a trunk, for its operator.
public enum TrunkReport: Hashable, Sendable {
    /// An account's connection changed.
    case connection(TrunkSide, String)
    /// A call came in from a side, and its other half is placed.
    case began(UInt64, TrunkSide, TrunkParties)
    /// A call came in from a side, and was refused.
    case refused(TrunkSide, from: String, dialled: String?, TrunkRefusal)
    /// The callee has answered.
    case answered(UInt64)
    /// Both hear each other.
    case joined(UInt64)
    /// The call that came from a side has ended.
    case ended(UInt64, TrunkSide, TrunkCallEnd)
    /// New calls are refused, or taken again.
    case draining(Bool)
}
