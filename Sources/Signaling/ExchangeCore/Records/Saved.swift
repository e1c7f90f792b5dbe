public import SignalWire
public import Core

/// The state that an exchange left on disk, for the next run to continue with. Instants are those of the running
/// process.
public struct Saved: Sendable {
    /// How a principal's events are numbered.
    public struct Stream: Hashable, Sendable {
        /// Whose they are.
        public var principal: Principal
        /// No number up to this one is given again.
        public var reserved: UInt64
        /// Events up to this number are discarded.
        public var forgotten: UInt64
        /// The newest event that has grown too old of those for each audience.
        public var outdated: [StoredEvent.Audience: UInt64]

        /// Makes an entry.
        public init(
            principal: Principal, reserved: UInt64, forgotten: UInt64, outdated: [StoredEvent.Audience: UInt64] = [:]
        ) {
            self.principal = principal
            self.reserved = reserved
            self.forgotten = forgotten
            self.outdated = outdated
        }
    }

    /// How often the database has been opened by an exchange, this time included; at least 1.
    public var run: UInt64 = 1
    /// Access tokens.
    public var tokens: [StoredToken] = []
    /// The logins that they belong to.
    public var logins: [StoredLogin] = []
    /// Sessions that may be resumed.
    public var sessions: [StoredSession] = []
    /// Open invites, and those that are remembered, oldest first.
    public var invites: [StoredInvite] = []
    /// The groups, each user's in the order of making.
    public var groups: [StoredGroup] = []
    /// Where to push, those that were set longest ago first.
    public var pushTargets: [StoredPushTargets] = []
    /// Pushes that are to be made, and those whose invites are still open, oldest first.
    public var pendingPushes: [StoredPush] = []
    /// When users were added, where that is known: milliseconds since 1970.
    public var added: [UserID: Int64] = [:]
    /// The users that the users file had when an exchange last read it; `nil` if that is not known, in a database of an earlier
    /// version.
    public var fileUsers: Set<UserID>?
    /// The users' acquaintances.
    public var acquaintances: [StoredAcquaintance] = []
    /// Calls under way.
    public var calls: [StoredCall] = []
    /// How events are numbered.
    public var streams: [Stream] = []
    /// Events, each principal's in the order of their numbers.
    public var events: [StoredEvent] = []
    /// Letters that were not acknowledged, those of each pair of shards in the order of their numbers.
    public var letters: [Letter] = []
    /// How far letters have come.
    public var letterMarks: [StoredLetterMarks] = []

    /// Nothing at all.
    public init() {}
}

/// What is kept of a login beside its tokens.
public struct StoredLogin: Hashable, Sendable {
    /// What it is called in its tokens and sessions.
    public var id: String
    /// The API key that signed its tokens; `nil` if the exchange made them, empty if that is not known any more.
    public var issuer: String?
    /// The digest of what all its refresh tokens begin with.
    public var family: String?
    /// The generation of its newest pair of tokens.
    public var newest: UInt64
    /// The newest generation of which its bearer has shown a token.
    public var reached: UInt64
    /// When it was last in use, an hour earlier at most; `nil`: not known, from an earlier version.
    public var used: Instant?

    /// Makes an entry.
    public init(
        id: String, issuer: String? = nil, family: String? = nil, newest: UInt64 = 0, reached: UInt64 = 0,
        used: Instant? = nil
    ) {
        self.id = id
        self.issuer = issuer
        self.family = family
        self.newest = newest
        self.reached = reached
        self.used = used
    }
}

/// A session's place in a room, or the place that a signed token opens.
public struct StoredPlace: Codable, Hashable, Sendable {
    /// The room's name.
    public var room: RoomName
    /// `publisher`, `subscriber` or `moderator`, if a signed token said so.
    public var role: String?
    /// Connection data for others to see.
    public var data: String?

    /// Makes an entry.
    public init(room: RoomName, role: String? = nil, data: String? = nil) {
        self.room = room
        self.role = role
        self.data = data
    }
}

/// A group as stored.
public struct StoredGroup: Hashable, Sendable {
    /// The group's id.
    public var id: GroupID
    /// For people.
    public var name: String?
    /// The user that made it.
    public var owner: UserID
    /// Everybody who is in it, in the order of joining, the owner first.
    public var members: [UserID]

    /// Makes an entry.
    public init(id: GroupID, name: String? = nil, owner: UserID, members: [UserID]) {
        self.id = id
        self.name = name
        self.owner = owner
        self.members = members
    }
}

/// The push tokens of one device, as stored.
public struct StoredPushTargets: Hashable, Sendable {
    /// Whose device it is.
    public var user: UserID
    /// The device.
    public var device: DeviceID
    /// Its push tokens; empty: the device is not pushed to.
    public var targets: [DeviceRegister.PushTarget]

    /// Makes an entry.
    public init(user: UserID, device: DeviceID, targets: [DeviceRegister.PushTarget]) {
        self.user = user
        self.device = device
        self.targets = targets
    }
}

/// That a user knows another: it has accepted an invite of the other, or has invited it.
public struct StoredAcquaintance: Hashable, Sendable {
    /// The user that knows the other.
    public var owner: UserID
    /// The other.
    public var user: UserID
    /// When that was last so, an hour too early at most.
    public var used: Instant

    /// Makes an entry.
    public init(owner: UserID, user: UserID, used: Instant) {
        self.owner = owner
        self.user = user
        self.used = used
    }
}
