import SignalWire

/// Presence: the subscribed connections, and the users that were reachable at the last notification.
struct PresenceSubscribers: Sendable {
    /// Whether users may see who is there.
    private let isAllowed: Bool
    private var subscribers: Set<ConnectionID> = []
    private var reachable: Set<UserID> = []

    init(isAllowed: Bool) { self.isAllowed = isAllowed }

    /// Subscribes the connection to presence changes.
    ///
    /// - Returns: The users that are reachable now, and then those that are not.
    mutating func subscribe(
        _ session: Session, _ accounts: AccountDirectory, _ sessions: Sessions
    ) throws(RPCError) -> PresenceSubscribe.Result {
        guard isAllowed else { throw RPCError(.notAllowed, "Presence is switched off on this exchange.") }
        subscribers.insert(session.connection)
        let others = accounts.all.filter { $0.id != session.endpoint.user }.map { Self.entry($0, sessions) }
        let listed = others.filter(\.reachable) + others.filter { !$0.reachable }
        let page = Page(listed.prefix(SignalLimits.presenceUsers).lazy.map { ($0.user, $0) })
        return PresenceSubscribe.Result(users: page.entries)
    }

    mutating func unsubscribe(_ connection: ConnectionID) { subscribers.remove(connection) }

    /// Notifies subscribers of those users whose presence changed; users with unchanged presence are left out.
    mutating func announce(
        _ users: [UserID], _ accounts: AccountDirectory, _ sessions: Sessions, _ effects: inout Effects
    ) {
        guard isAllowed else { return }
        for user in users {
            guard note(user, isReachable: sessions.isReachable(user)), let account = accounts.account(id: user) else {
                continue
            }
            let event = effects.body(of: .presenceChanged(Self.entry(account, sessions)))
            let audience = subscribers.sorted { $0.number < $1.number }
            for session in audience.compactMap({ sessions[$0] }) where session.endpoint.user != user {
                effects.sendTransient(event, to: session)
            }
        }
    }

    /// Notes whether a user can be reached.
    ///
    /// - Returns: Whether that changed.
    private mutating func note(_ user: UserID, isReachable: Bool) -> Bool {
        isReachable ? reachable.insert(user).inserted : reachable.remove(user) != nil
    }

    private static func entry(_ account: Account, _ sessions: Sessions) -> Presence {
        Presence(user: account.id, publicIDs: account.publicIDs, reachable: sessions.isReachable(account.id))
    }
}
