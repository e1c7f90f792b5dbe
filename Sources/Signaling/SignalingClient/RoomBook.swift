internal import CallControl
internal import SignalWire

/// The rooms that this device is in and who else is there, as far as it was told (contract CONN-7).
///
/// Bounded by what the exchange allows: 32 rooms to a connection, 200 connections to a room.
struct RoomBook {
    /// One room.
    private struct Room {
        /// How it was joined, to join it again after a fresh start.
        let join: RoomJoin
        var people: [String: CallControl.RoomParticipant]
    }

    private var rooms: [String: Room] = [:]

    /// How each room was joined.
    var joins: [RoomJoin] { rooms.values.map(\.join) }

    /// This device is in a room, with these others.
    ///
    /// - Returns: What has to be told: those who are new to us, and those who went while we could not hear it.
    mutating func enter(_ join: RoomJoin, _ others: [CallControl.RoomParticipant]) -> [SignalingEvent] {
        let name = join.room.text
        let before = rooms[name]?.people ?? [:]
        let after = Dictionary(others.map { ($0.connection, $0) }) { first, _ in first }
        rooms[name] = Room(join: join, people: after)
        let gone = before.keys.filter { after[$0] == nil }.sorted().map {
            SignalingEvent.connectionDestroyed(room: name, connection: $0, reason: "connectionLost")
        }
        return gone
            + others.filter { before[$0.connection] == nil }.map {
                .connectionCreated(room: name, $0)
            }
    }

    /// This device is in a room no more.
    mutating func leave(_ room: String) { rooms[room] = nil }

    /// Notes that somebody came or went.
    ///
    /// - Returns: Whether that is news; somebody whom the answer to our joining named is told once.
    mutating func note(_ event: SignalingEvent) -> Bool {
        switch event {
        case .connectionCreated(let room, let person):
            guard rooms[room] != nil else { return true }
            return rooms[room]?.people.updateValue(person, forKey: person.connection) == nil
        case .connectionDestroyed(let room, let connection, _):
            guard rooms[room] != nil else { return true }
            return rooms[room]?.people.removeValue(forKey: connection) != nil
        default:
            return true
        }
    }
}
