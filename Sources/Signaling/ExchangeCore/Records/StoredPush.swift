public import JSON
public import SignalWire
public import Core

/// One push to one device by one of its push tokens, as stored: until it is made, or its invite ends (DEV-4).
public struct StoredPush: Hashable, Sendable {
    /// The message of a push.
    public enum Message: String, Hashable, Sendable {
        /// A user calls.
        case invite
        /// The invite ended for this user: stop ringing; with a payload, a call was missed.
        case ended
    }

    /// Its id, the same on each attempt.
    public var id: PushID
    /// The invite that it is about.
    public var invite: InviteID
    /// Whose device it goes to.
    public var user: UserID
    /// The device.
    public var device: DeviceID
    /// By which service, and what that knows the device by.
    public var target: DeviceRegister.PushTarget
    /// The message of the push.
    public var message: Message
    /// Who calls, or called.
    public var inviter: UserID
    /// The group that is invited, if it is a group invite.
    public var group: GroupID?
    /// From the inviter's application: the push payload or, once the invite has ended, the timeout payload.
    public var payload: KeptJSON?
    /// Why the invite ended: `accepted`, `rejected`, `cancelled` or `timedOut`; `nil` while it is open.
    public var reason: String?
    /// When the invite times out; `nil` is never.
    public var deadline: Instant?
    /// When the push expires.
    public var expires: Instant
    /// When it is tried next.
    public var due: Instant
    /// Attempts that were begun.
    public var attempts: Int
    /// The push needs no further attempt, but its device may know of the invite, and is notified when that ends.
    public var isSettled: Bool

    /// Makes an entry.
    public init(
        id: PushID, invite: InviteID, user: UserID, device: DeviceID, target: DeviceRegister.PushTarget,
        message: Message,
        inviter: UserID, group: GroupID? = nil, payload: JSONValue? = nil, reason: String? = nil,
        deadline: Instant? = nil, expires: Instant, due: Instant, attempts: Int = 0, isSettled: Bool = false
    ) {
        self.id = id
        self.invite = invite
        self.user = user
        self.device = device
        self.target = target
        self.message = message
        self.inviter = inviter
        self.group = group
        self.payload = KeptJSON(payload)
        self.reason = reason
        self.deadline = deadline
        self.expires = expires
        self.due = due
        self.attempts = attempts
        self.isSettled = isSettled
    }
}
