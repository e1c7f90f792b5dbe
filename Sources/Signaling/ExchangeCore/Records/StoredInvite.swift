public import JSON
public import SignalWire
public import Core

/// An invite as stored, with the state of each invitee.
public struct StoredInvite: Hashable, Sendable {
    /// One who is asked.
    public struct Invitee: Codable, Hashable, Sendable {
        /// How far an invitee can have come.
        public enum State: String, Codable, Hashable, Sendable {
            case pending, accepted, rejected, timedOut, cancelled
        }

        /// The user.
        public var user: UserID
        /// How far it has come.
        public var state: State
        /// The device that answered, once one has.
        public var device: DeviceID?

        /// Makes an entry.
        public init(user: UserID, state: State, device: DeviceID? = nil) {
            self.user = user
            self.state = state
            self.device = device
        }
    }

    /// The invite's id.
    public var id: InviteID
    /// Who sent it.
    public var inviter: UserID
    /// With which device.
    public var inviterDevice: DeviceID
    /// The group that was invited, if it is a group invite.
    public var group: GroupID?
    /// Who is asked, in the order of asking.
    public var invitees: [Invitee]
    /// From the inviter's application.
    public var data: KeptJSON?
    /// The push payload.
    public var payload: KeptJSON?
    /// What invitees get who missed it.
    public var timeoutPayload: KeptJSON?
    /// The client's key, unique for the inviter while the invite is remembered.
    public var idempotencyKey: IdempotencyKey?
    /// The whole time to live, in seconds; 0 means no limit. After a restart the remaining time never exceeds this.
    public var ttlSeconds: Double
    /// When it was sent.
    public var sentAt: Instant
    /// When it times out; `nil` is never.
    public var deadline: Instant?
    /// When an ended invite is forgotten; `nil` while it is open.
    public var forgottenAt: Instant?
    /// Whether only connected devices receive it, without pushes.
    public var isOnlineOnly: Bool

    /// Makes an entry.
    public init(
        id: InviteID, inviter: UserID, inviterDevice: DeviceID, group: GroupID? = nil, invitees: [Invitee],
        data: JSONValue? = nil, payload: JSONValue? = nil, timeoutPayload: JSONValue? = nil,
        idempotencyKey: IdempotencyKey? = nil, ttlSeconds: Double, sentAt: Instant, deadline: Instant? = nil,
        forgottenAt: Instant? = nil, isOnlineOnly: Bool = false
    ) {
        self.id = id
        self.inviter = inviter
        self.inviterDevice = inviterDevice
        self.group = group
        self.invitees = invitees
        self.data = KeptJSON(data)
        self.payload = KeptJSON(payload)
        self.timeoutPayload = KeptJSON(timeoutPayload)
        self.idempotencyKey = idempotencyKey
        self.ttlSeconds = ttlSeconds
        self.sentAt = sentAt
        self.deadline = deadline
        self.forgottenAt = forgottenAt
        self.isOnlineOnly = isOnlineOnly
    }
}
