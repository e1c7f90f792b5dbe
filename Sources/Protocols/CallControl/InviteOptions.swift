public import JSON

/// What an invite says and how long it stands (contract INV-1).
public struct InviteOptions: Hashable, Sendable {
    /// Whom to invite: a user or one of its public ids.
    public var to: UserID
    /// What the invitee hears with the invite; for a call an object whose key `offer` a call machine fills in.
    public var data: JSONValue
    /// How long the invite stands; `nil` never times out by itself (INV-9). Default 30 s.
    public var timeToLive: Duration?
    /// Push payload for devices that are not connected.
    public var payload: JSONValue?
    /// Push payload for invitees that let it pass (a missed call).
    public var timeoutPayload: JSONValue?
    /// Fail with ``SignalingError/Code/noDeviceOnline`` rather than wait for a device to appear.
    public var isOnlineOnly: Bool
    /// The same key names the same invite, however often it is sent.
    public var idempotencyKey: String

    /// Makes the options of one invite.
    public init(
        to: UserID, data: JSONValue = [:], timeToLive: Duration? = .seconds(30), payload: JSONValue? = nil,
        timeoutPayload: JSONValue? = nil, isOnlineOnly: Bool = false, idempotencyKey: String
    ) {
        self.to = to
        self.data = data
        self.timeToLive = timeToLive
        self.payload = payload
        self.timeoutPayload = timeoutPayload
        self.isOnlineOnly = isOnlineOnly
        self.idempotencyKey = idempotencyKey
    }
}

extension JSONValue {
    /// This value with `member` under `key`; a value that is no object is replaced by one.
    func setting(_ key: String, to member: JSONValue) -> JSONValue {
        guard case .object(var members) = self else { return .object([key: member]) }
        members[key] = member
        return .object(members)
    }
}
