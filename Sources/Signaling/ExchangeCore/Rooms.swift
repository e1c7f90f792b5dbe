import SignalWire

/// One session in one room. It stays while the session's connection is lost, for as long as it can be resumed.
struct Occupant: Hashable, Sendable {
    let session: SessionID
    let endpoint: Endpoint
    let participant: RoomJoin.Participant
    /// Rises from each who joins to the next; given by ``Rooms``.
    fileprivate(set) var number: UInt64 = 0

    init(session: SessionID, endpoint: Endpoint, participant: RoomJoin.Participant) {
        self.session = session
        self.endpoint = endpoint
        self.participant = participant
    }
}

/// Who is in which room. A room is there for as long as somebody is in it.
///
/// Capacity: ``participants`` in a room, ``roomsPerSession`` for a session.
struct Rooms: Sendable {
    static let participants = 200
    static let roomsPerSession = 32

    private var occupantsByRoom: [RoomName: [Occupant]] = [:]
    private var roomsBySession: [SessionID: [RoomName]] = [:]
    private var lastNumber: UInt64 = 0

    /// Who is in `room`, in the order of joining.
    func occupants(of room: RoomName) -> [Occupant] { occupantsByRoom[room] ?? [] }

    /// A session's place in `room`, if it is there.
    func occupant(_ session: SessionID, in room: RoomName) -> Occupant? {
        occupants(of: room).first { $0.session == session }
    }

    /// Whether `room`, or `session` with its rooms, has reached its capacity.
    func isFull(_ room: RoomName, for session: SessionID) -> Bool {
        occupants(of: room).count >= Self.participants
            || (roomsBySession[session]?.count ?? 0) >= Self.roomsPerSession
    }

    mutating func join(_ room: RoomName, _ occupant: Occupant) {
        lastNumber += 1
        var occupant = occupant
        occupant.number = lastNumber
        occupantsByRoom[room, default: []].append(occupant)
        roomsBySession[occupant.session, default: []].append(room)
    }

    /// - Returns: The place that the session had in the room, if it was there.
    mutating func leave(_ room: RoomName, _ session: SessionID) -> Occupant? {
        guard let index = occupantsByRoom[room]?.firstIndex(where: { $0.session == session }) else { return nil }
        let occupant = occupantsByRoom[room]?.remove(at: index)
        if occupantsByRoom[room]?.isEmpty == true { occupantsByRoom[room] = nil }
        roomsBySession[session]?.removeAll { $0 == room }
        if roomsBySession[session]?.isEmpty == true { roomsBySession[session] = nil }
        return occupant
    }

    /// The rooms that a session is in, in the order of joining.
    func rooms(of session: SessionID) -> [RoomName] { roomsBySession[session] ?? [] }
}
