public import SignalWire

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
