/// `presence.subscribe`: returns the present state of users, and from then on sends changes while the connection lives.
public struct PresenceSubscribe: RPCMethod {
    /// The method's name on the wire.
    public static let method = "presence.subscribe"

    /// The users' present state.
    public struct Result: Codable, Hashable, Sendable {
        /// The other users, those that can be reached first, then in the order of their ids; at most
        /// ``SignalLimits/presenceUsers``, and no more than fit into one message.
        public var users: [Presence]

        /// Makes a result.
        public init(users: [Presence]) { self.users = users }
    }

    /// Makes the parameters: none.
    public init() {}
}

/// `presence.unsubscribe`: ends the subscription.
public struct PresenceUnsubscribe: RPCMethod {
    /// The method's name on the wire.
    public static let method = "presence.unsubscribe"
    /// Empty.
    public typealias Result = Empty

    /// Makes the parameters: none.
    public init() {}
}

/// Whether one user can be called; also the data of `presenceChanged`.
public struct Presence: Codable, Hashable, Sendable {
    /// The user's id.
    public var user: UserID
    /// The ids by which the user can be called.
    public var publicIDs: [UserID]
    /// At least one of the user's devices is connected and receives invites.
    public var reachable: Bool

    /// Makes an entry.
    public init(user: UserID, publicIDs: [UserID], reachable: Bool) {
        self.user = user
        self.publicIDs = publicIDs
        self.reachable = reachable
    }

    private enum CodingKeys: String, CodingKey { case user, reachable, publicIDs = "public_ids" }
}
