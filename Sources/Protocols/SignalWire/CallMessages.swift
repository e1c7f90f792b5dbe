public import JSON

/// `call.signal`: a message to the peer of a call, such as a candidate.
public struct CallSignal: RPCMethod {
    /// The method's name on the wire.
    public static let method = "call.signal"
    /// Empty.
    public typealias Result = Empty

    /// The invite that became, or is to become, the call.
    public var invite: InviteID
    /// The kind of signal; at most ``SignalLimits/signalTypeBytes``.
    public var type: String
    /// The signal; at most ``SignalLimits/signalDataBytes`` as JSON text.
    public var data: JSONValue?
    /// From an inviter: the invitee that receives it. Needed once several have accepted.
    public var peer: UserID?

    /// Makes the parameters.
    public init(invite: InviteID, type: String, data: JSONValue? = nil, peer: UserID? = nil) {
        self.peer = peer
        self.invite = invite
        self.type = type
        self.data = data
    }
}

/// `call.probe`: finds out whether the peer of a call is still connected (CALL-4).
public struct CallProbe: RPCMethod {
    /// The method's name on the wire.
    public static let method = "call.probe"

    /// The peer's state, as the exchange knows it.
    public struct Result: Codable, Hashable, Sendable {
        /// Whether the peer's device is connected, or can still resume its session.
        public var present: Bool

        /// Makes the result.
        public init(present: Bool) { self.present = present }
    }

    /// The invite that became the call.
    public var invite: InviteID
    /// From an inviter: the call with which invitee. Needed once several have accepted.
    public var peer: UserID?

    /// Makes the parameters.
    public init(invite: InviteID, peer: UserID? = nil) {
        self.invite = invite
        self.peer = peer
    }
}

/// `call.end`: hangs up. The peer receives `callEnded` (CALL-3).
public struct CallEnd: RPCMethod {
    /// The method's name on the wire.
    public static let method = "call.end"
    /// All that `reason` may be (CALL-5).
    public static let reasons: Set<String> = [
        "completed", "declined", "busy", "noAnswer", "cancelled", "acceptedElsewhere", "declinedElsewhere",
        "dialFailed", "acceptFailed", "connectionLost", "disconnected", "internalError",
    ]
    /// Empty.
    public typealias Result = Empty

    /// The invite that became the call.
    public var invite: InviteID
    /// Why, one of ``reasons``: `completed` for an ordinary hang-up.
    public var reason: String
    /// Why it failed, if it did: a word of letters, at most ``SignalLimits/causeBytes``.
    public var cause: String?
    /// How long the call was established, in milliseconds.
    public var durationMilliseconds: Int64
    /// From an inviter: the call with which invitee. Needed once several have accepted.
    public var peer: UserID?

    /// Makes the parameters.
    public init(
        invite: InviteID, reason: String, cause: String? = nil, durationMilliseconds: Int64, peer: UserID? = nil
    ) {
        self.peer = peer
        self.cause = cause
        self.invite = invite
        self.reason = reason
        self.durationMilliseconds = durationMilliseconds
    }

    private enum CodingKeys: String, CodingKey {
        case invite, reason, cause, peer
        case durationMilliseconds = "duration_ms"
    }

    /// Whether a word may be a ``cause``: a code for programs, never a sentence.
    public static func isCause(_ text: String) -> Bool {
        (1...SignalLimits.causeBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy { (97...122).contains($0 | 0x20) }
    }
}
