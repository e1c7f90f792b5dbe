public import JSON

/// Data of `callSignal`: to the peer of a call.
public struct CallSignalled: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// The kind of signal.
    public var type: String
    /// The signal, unchanged.
    public var data: JSONValue?
    /// The user that sent it.
    public var from: UserID

    /// Makes the data.
    public init(invite: InviteID, type: String, data: JSONValue? = nil, from: UserID) {
        self.invite = invite
        self.type = type
        self.data = data
        self.from = from
    }
}

/// Data of `callEnded`: to the peer of the party that hung up or left (CALL-3).
public struct CallEnded: Codable, Hashable, Sendable {
    /// The invite.
    public var invite: InviteID
    /// Why, as in CALL-5; `disconnected` if the peer's session ended.
    public var reason: String
    /// Why it failed, if given.
    public var cause: String?
    /// How long the call was established, in milliseconds.
    public var durationMilliseconds: Int64
    /// The user that ended it.
    public var from: UserID

    /// Makes the data.
    public init(
        invite: InviteID, reason: String, cause: String? = nil, durationMilliseconds: Int64, from: UserID
    ) {
        self.invite = invite
        self.cause = cause
        self.reason = reason
        self.durationMilliseconds = durationMilliseconds
        self.from = from
    }

    private enum CodingKeys: String, CodingKey {
        case invite, reason, cause, from
        case durationMilliseconds = "duration_ms"
    }
}
