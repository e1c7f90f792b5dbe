public import JSON

/// The content of an invite, and how long it lasts (contract INV-1).
public struct InviteOptions: Hashable, Sendable {
    /// Whom to invite: users or public ids, at least one.
    public var invitees: [UserID]
    /// The group in which to invite them, all members of which receive it (GRP-2); `nil` for none.
    public var group: GroupID?
    /// Data for the invitee; for a call an object whose key `offer` a call machine fills in.
    public var data: JSONValue
    /// How long the invite lasts; `nil` never times out (INV-9). Default 30 s.
    public var timeToLive: Duration?
    /// Push payload for devices that are not connected.
    public var payload: JSONValue?
    /// Push payload for invitees that let it pass (a missed call).
    public var timeoutPayload: JSONValue?
    /// Fail with ``SignalingError/Code/noDeviceOnline`` rather than wait for a device to appear.
    public var isOnlineOnly: Bool
    /// The same key names the same invite, however often it is sent.
    public var idempotencyKey: String

    /// The first invitee, with whom a call is.
    public var to: UserID { invitees.first ?? "" }

    /// Makes the options of an invite to one user.
    public init(
        to: UserID, data: JSONValue = [:], timeToLive: Duration? = .seconds(30), payload: JSONValue? = nil,
        timeoutPayload: JSONValue? = nil, isOnlineOnly: Bool = false, idempotencyKey: String
    ) {
        self.init(
            to: [to], data: data, timeToLive: timeToLive, payload: payload, timeoutPayload: timeoutPayload,
            isOnlineOnly: isOnlineOnly, idempotencyKey: idempotencyKey)
    }

    /// Makes the options of an invite to several users.
    public init(
        to invitees: [UserID], in group: GroupID? = nil, data: JSONValue = [:], timeToLive: Duration? = .seconds(30),
        payload: JSONValue? = nil,
        timeoutPayload: JSONValue? = nil, isOnlineOnly: Bool = false, idempotencyKey: String
    ) {
        self.invitees = invitees
        self.group = group
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
