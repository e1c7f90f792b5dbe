internal import SignalWire

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
    /// The users' acquaintances.
    public var acquaintances: [StoredAcquaintance] = []
    /// Calls under way.
    public var calls: [StoredCall] = []
    /// How events are numbered.
    public var streams: [Stream] = []
    /// Events, each principal's in the order of their numbers.
    public var events: [StoredEvent] = []

    /// Nothing at all.
    public init() {}
}
