/// A group as it is kept.
public struct StoredGroup: Hashable, Sendable {
    /// The group's id.
    public var id: String
    /// For people.
    public var name: String?
    /// The user that made it.
    public var owner: String
    /// Everybody who is in it, in the order of joining, the owner first.
    public var members: [String]

    /// Makes an entry.
    public init(id: String, name: String? = nil, owner: String, members: [String]) {
        self.id = id
        self.name = name
        self.owner = owner
        self.members = members
    }
}
