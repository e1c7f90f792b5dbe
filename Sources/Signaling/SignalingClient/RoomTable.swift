internal import CallControl
internal import SignalWire

/// The rooms that this device is in and their other participants, as reported by the exchange (contract CONN-7).
///
/// Bounded by what the exchange allows: 32 rooms to a connection, 200 connections to a room.
struct RoomTable {
    /// One room.
    private struct Room {
        /// How it was joined, to join it again after a fresh start.
        let join: RoomJoin
        var people: [ConnectionName: CallControl.RoomParticipant]
        /// Who was there before this joining, and has not been named in the answers to it yet.
        var unconfirmed: Set<ConnectionName>
    }

    private var rooms: [RoomName: Room] = [:]

    /// How each room was joined.
    var joins: [RoomJoin] { rooms.values.map(\.join) }

    /// This device is in a room, with these others; a long list comes in several answers.
    ///
    /// - Returns: The events to report: participants that are new here and, with the last answer, those that left while
    ///   the device was disconnected.
    mutating func enter(
        _ join: RoomJoin, _ others: [CallControl.RoomParticipant], isLast: Bool = true
    ) -> [SignalingEvent] {
        let name = join.room
        let known = rooms[name]
        var room = known ?? Room(join: join, people: [:], unconfirmed: [])
        if join.after == nil {
            room = Room(join: join, people: room.people, unconfirmed: Set(room.people.keys))
        } else if known == nil {
            return []  // Left since.
        }
        var told: [SignalingEvent] = []
        for other in others {
            room.unconfirmed.remove(other.connection)
            guard room.people.updateValue(other, forKey: other.connection) == nil else { continue }
            told.append(.connectionCreated(room: name, other))
        }
        if isLast {
            let gone = room.unconfirmed.sorted()
            for connection in gone { room.people[connection] = nil }
            room.unconfirmed = []
            told =
                gone.map { .connectionDestroyed(room: name, connection: $0, reason: "connectionLost") } + told
        }
        rooms[name] = room
        return told
    }

    /// This device is in a room no more.
    mutating func leave(_ room: RoomName) { rooms[room] = nil }

    /// Records that a participant came or left.
    ///
    /// - Returns: Whether that is a change; a participant that the answer to the join named is reported once.
    mutating func note(_ event: SignalingEvent) -> Bool {
        switch event {
        case .connectionCreated(let room, let person):
            guard rooms[room] != nil else { return true }
            rooms[room]?.unconfirmed.remove(person.connection)
            return rooms[room]?.people.updateValue(person, forKey: person.connection) == nil
        case .connectionDestroyed(let room, let connection, _):
            guard rooms[room] != nil else { return true }
            rooms[room]?.unconfirmed.remove(connection)
            return rooms[room]?.people.removeValue(forKey: connection) != nil
        default:
            return true
        }
    }
}
