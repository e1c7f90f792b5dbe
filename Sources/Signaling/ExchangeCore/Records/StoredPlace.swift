public import SignalWire

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
