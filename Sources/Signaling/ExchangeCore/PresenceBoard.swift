import SignalWire

/// Who wants to hear who comes and goes, and who was there when they last heard.
struct PresenceBoard: Sendable {
    private var subscribers: Set<ConnectionID> = []
    private var reachable: Set<UserID> = []

    /// The connections that want to hear of it, oldest first.
    var audience: [ConnectionID] { subscribers.sorted { $0.number < $1.number } }

    mutating func subscribe(_ connection: ConnectionID) { subscribers.insert(connection) }
    mutating func unsubscribe(_ connection: ConnectionID) { subscribers.remove(connection) }

    /// Notes whether a user can be reached.
    ///
    /// - Returns: Whether that is news.
    mutating func note(_ user: UserID, isReachable: Bool) -> Bool {
        isReachable ? reachable.insert(user).inserted : reachable.remove(user) != nil
    }
}
