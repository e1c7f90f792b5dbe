/// Who is in which room. A room is there for as long as somebody is in it.
///
/// Capacity: ``participants`` in a room, ``roomsPerConnection`` for a connection.
struct Rooms: Sendable {
    static let participants = 200
    static let roomsPerConnection = 32

    private var connectionsByRoom: [RoomName: [ConnectionID]] = [:]
    private var roomsByConnection: [ConnectionID: [RoomName]] = [:]

    /// Who is in `room`, in the order of joining.
    func connections(in room: RoomName) -> [ConnectionID] { connectionsByRoom[room] ?? [] }

    /// Whether `room`, or `connection` with its rooms, has reached its capacity.
    func isFull(_ room: RoomName, for connection: ConnectionID) -> Bool {
        connections(in: room).count >= Self.participants
            || (roomsByConnection[connection]?.count ?? 0) >= Self.roomsPerConnection
    }

    mutating func join(_ room: RoomName, _ connection: ConnectionID) {
        connectionsByRoom[room, default: []].append(connection)
        roomsByConnection[connection, default: []].append(room)
    }

    /// - Returns: Whether the connection was in the room.
    mutating func leave(_ room: RoomName, _ connection: ConnectionID) -> Bool {
        guard let index = connectionsByRoom[room]?.firstIndex(of: connection) else { return false }
        connectionsByRoom[room]?.remove(at: index)
        if connectionsByRoom[room]?.isEmpty == true { connectionsByRoom[room] = nil }
        roomsByConnection[connection]?.removeAll { $0 == room }
        if roomsByConnection[connection]?.isEmpty == true { roomsByConnection[connection] = nil }
        return true
    }

    /// The rooms that a connection is in, in the order of joining.
    func rooms(of connection: ConnectionID) -> [RoomName] { roomsByConnection[connection] ?? [] }
}
