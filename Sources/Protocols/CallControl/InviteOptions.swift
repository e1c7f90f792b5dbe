public import JSON
public import Tracing

/// The content of an invite, and how long it lasts (contract INV-1).
public struct InviteOptions: Hashable, Sendable {
    /// The first invitee, the peer of a call.
    public let to: UserID
    /// The other invitees.
    public let others: [UserID]
    /// The group in which to invite them, all members of which receive it (GRP-2); `nil` for none.
    public var group: GroupID?
    /// The offer of a call, which a call machine fills in; nil if the invite is none.
    public var offer: CallDescription?
    /// What is said of a call that crosses between an exchange and a telephone network.
    public var trunk: TrunkCall?
    /// The call that this one takes the place of, if it is a transfer.
    public var transfer: CallTransfer.Origin?
    /// The call's span, for the invitee's traces; nil if calls are not traced here.
    public var trace: TraceContext?
    /// How many calls led to this one.
    public var hops = CallHops()
    /// An application's data for the invitee.
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
    public var idempotencyKey: IdempotencyKey

    /// All invitees: users or public ids.
    public var invitees: [UserID] { [to] + others }

    /// Makes the options of an invite to one user.
    public init(
        to: UserID, data: JSONValue = [:], timeToLive: Duration? = .seconds(30), payload: JSONValue? = nil,
        timeoutPayload: JSONValue? = nil, isOnlineOnly: Bool = false, idempotencyKey: IdempotencyKey
    ) {
        self.init(
            to: [to], data: data, timeToLive: timeToLive, payload: payload, timeoutPayload: timeoutPayload,
            isOnlineOnly: isOnlineOnly, idempotencyKey: idempotencyKey)
    }

    /// Makes the options of an invite to several users, at least one.
    public init(
        to invitees: [UserID], in group: GroupID? = nil, data: JSONValue = [:], timeToLive: Duration? = .seconds(30),
        payload: JSONValue? = nil,
        timeoutPayload: JSONValue? = nil, isOnlineOnly: Bool = false, idempotencyKey: IdempotencyKey
    ) {
        guard let first = invitees.first else { preconditionFailure("an invite has no invitee") }
        to = first
        others = Array(invitees.dropFirst())
        self.group = group
        self.data = data
        self.timeToLive = timeToLive
        self.payload = payload
        self.timeoutPayload = timeoutPayload
        self.isOnlineOnly = isOnlineOnly
        self.idempotencyKey = idempotencyKey
    }
}
