public import SignalWire
public import Core

/// A push that could not be made, for people to look at. Its token is not in it.
public struct DeadPush: Hashable, Sendable {
    /// Why nothing more is tried.
    public enum Reason: String, Hashable, Sendable {
        /// The service does not know the device any more; its token has been removed.
        case gone
        /// The webhook will not take it, now or later.
        case refused
        /// Its time was over before the webhook took it.
        case expired
        /// Too many others were waiting.
        case overflow
    }

    /// The push's id, as the webhook was given it.
    public var id: PushID
    /// The invite that it was about.
    public var invite: InviteID
    /// Whose device it was for.
    public var user: UserID
    /// The device.
    public var device: DeviceID
    /// The kind of push token.
    public var kind: PushKind
    /// The message of the push: `invite` or `ended`.
    public var message: String
    /// Why nothing more is tried.
    public var reason: Reason
    /// What the last attempt came to, in a few words; `nil` without one.
    public var detail: String?
    /// Attempts that were made.
    public var attempts: Int

    /// Makes an entry.
    public init(_ push: StoredPush, _ reason: Reason, detail: String?) {
        id = push.id
        invite = push.invite
        user = push.user
        device = push.device
        kind = push.target.kind
        message = push.message.rawValue
        self.reason = reason
        self.detail = detail
        attempts = push.attempts
    }

    /// Makes an entry of what is kept of one.
    package init(
        id: PushID, invite: InviteID, user: UserID, device: DeviceID, kind: PushKind, message: String, reason: Reason,
        detail: String?, attempts: Int
    ) {
        self.id = id
        self.invite = invite
        self.user = user
        self.device = device
        self.kind = kind
        self.message = message
        self.reason = reason
        self.detail = detail
        self.attempts = attempts
    }

    /// How many are kept; the oldest go first.
    package static let capacity = 10_000

    /// One as it was read from disk.
    public struct Record: Hashable, Sendable {
        /// The push.
        public var push: DeadPush
        /// When it was given up.
        public var at: WallClock

        /// Makes a record.
        package init(push: DeadPush, at: WallClock) {
            self.push = push
            self.at = at
        }
    }
}
