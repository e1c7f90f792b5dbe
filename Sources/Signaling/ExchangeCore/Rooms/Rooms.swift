import Core
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

/// Rooms: their participants, and the messages between them (CONN-7, SIG-1). A room exists while it has a participant.
///
/// Capacity: ``participants`` in a room, ``roomsPerSession`` for a session.
struct Rooms: Sendable {
    static let participants = 200
    static let roomsPerSession = 32

    private var occupantsByRoom: [RoomName: [Occupant]] = [:]
    /// The names of all rooms, sorted.
    private var names: [RoomName] = []
    private var roomsBySession: [SessionID: [RoomName]] = [:]
    private var lastNumber: UInt64 = 0
    /// The sessions whose places changed since ``takeChanged()``.
    private var changed: Set<SessionID> = []

    /// Who is in `room`, in the order of joining.
    func occupants(of room: RoomName) -> [Occupant] { occupantsByRoom[room] ?? [] }

    /// A session's place in `room`, if it is there.
    func occupant(_ session: SessionID, in room: RoomName) -> Occupant? {
        occupants(of: room).first { $0.session == session }
    }

    /// The rooms that a session is in, in the order of joining.
    func rooms(of session: SessionID) -> [RoomName] { roomsBySession[session] ?? [] }

    /// The first rooms in the order of their names behind the name `after`, and whether there are more.
    ///
    /// - Complexity: Logarithmic in the rooms.
    func names(after: String?, atMost limit: Int) -> (names: [RoomName], hasMore: Bool) {
        let rest = names[(after.map { after in names.sortedIndex(behind: { $0.text > after }) } ?? 0)...]
        return (Array(rest.prefix(limit)), rest.count > limit)
    }

    // MARK: - Requests

    /// Adds a session to a room, and notifies the others. A session that is already in the room changes nothing.
    ///
    /// - Parameters:
    ///   - shown: The grant of the token that the request carries, if any.
    ///   - sessions: Used to check which participants have lost their connection.
    mutating func join(
        _ params: RoomJoin, _ session: Session, shown: Grant?, _ sessions: Sessions, _ effects: inout Effects
    ) throws(RPCError) -> RoomJoin.Result {
        let room = params.room
        let terms = try Self.terms(params, session, shown)
        let others = occupants(of: room).filter { $0.session != session.id }
        let page = Page(
            others.lazy.filter { $0.number > params.after ?? 0 }.map { ($0.number, $0.participant) })
        let result = RoomJoin.Result(participants: page.entries, next: page.next)
        guard occupant(session.id, in: room) == nil else { return result }
        guard !isFull(room, for: session.id) else {
            throw RPCError(.tooManyRequests, "The room is full, or this connection is in too many rooms.")
        }
        let participant = RoomJoin.Participant(
            connection: session.name, user: session.endpoint.user, role: terms?.role, data: terms?.data ?? params.data)
        let created = effects.body(
            of: .connectionCreated(
                ConnectionCreated(
                    room: room, connection: participant.connection, user: participant.user, role: participant.role,
                    data: participant.data)))
        let place = 2 * Weight.place + (participant.data?.utf8.count ?? 0)
        try effects.afford(place + Weight.of(created, for: others.count))
        add(Occupant(session: session.id, endpoint: session.endpoint, participant: participant), to: room)
        changed.insert(session.id)
        for other in others {
            effects.notify(other.endpoint, created)
            // The newcomer receives the room's current state: this participant is listed, but its connection is lost.
            guard sessions.isMissing(other.session) else { continue }
            let dropped = StreamChange(
                room: room, connection: other.participant.connection, user: other.participant.user)
            effects.notify(session.endpoint, .streamDropped(dropped))
        }
        return result
    }

    /// What a signed token says of the session's part in a room, if there is one.
    private static func terms(
        _ params: RoomJoin, _ session: Session, _ shown: Grant?
    ) throws(RPCError) -> Grant.RoomGrant? {
        if let shown, shown.user != session.endpoint.user {
            throw RPCError(.tokenRejected, "The token belongs to another user.")
        }
        let terms = shown == nil ? session.room : shown?.room
        for bound in [terms?.room, session.room?.room].compactMap({ $0 }) where bound != params.room {
            throw RPCError(.tokenForAnotherSession, "The token is valid for another session.")
        }
        return terms
    }

    /// Takes a session out of a room at its own request.
    mutating func leave(_ room: RoomName, _ session: SessionID, _ effects: inout Effects) throws(RPCError) {
        guard remove(session, from: room, reason: "left", &effects) else { throw Self.unknownRoom }
    }

    /// Takes a session out of all its rooms.
    mutating func leaveAll(_ session: SessionID, reason: String, _ effects: inout Effects) {
        for room in rooms(of: session) { _ = remove(session, from: room, reason: reason, &effects) }
    }

    /// Takes participants out of a room at the operator's request. Each learns of it as the others do.
    mutating func expel(_ expelled: [Occupant], from room: RoomName, _ effects: inout Effects) {
        for occupant in expelled {
            _ = remove(occupant.session, from: room, reason: "removed", &effects, informs: occupant.endpoint)
        }
    }

    /// Passes a signal to one participant of a room, or to all of them in one order (SIG-1).
    func pass(_ params: RoomSignal, from session: SessionID, _ effects: inout Effects) throws(RPCError) {
        try RequestChecks.check(signal: params.type, params.data)
        guard let sender = occupant(session, in: params.room) else { throw Self.unknownRoom }
        var receivers = occupants(of: params.room)
        if let name = params.to {
            receivers.removeAll { $0.participant.connection != name }
            guard !receivers.isEmpty else { throw Self.unknownRoom }
        }
        let signal = effects.body(
            of: .roomSignal(
                RoomSignalled(
                    room: params.room, type: params.type, data: params.data, from: sender.participant.connection,
                    user: sender.participant.user)))
        try effects.afford(Weight.of(signal, for: receivers.count))
        for receiver in receivers { effects.notify(receiver.endpoint, signal) }
    }

    /// Notifies the others in a session's rooms that its connection is lost or restored (CONN-8).
    func tellOthers(of session: Session, _ event: (StreamChange) -> ExchangeEvent, _ effects: inout Effects) {
        for room in rooms(of: session.id) {
            let change = StreamChange(room: room, connection: session.name, user: session.endpoint.user)
            let others = occupants(of: room).filter { $0.session != session.id }
            let told = effects.body(of: event(change))
            for other in others { effects.notify(other.endpoint, told) }
        }
    }

    // MARK: - To disk and back

    /// The sessions whose places changed since last asked.
    mutating func takeChanged() -> Set<SessionID> {
        guard !changed.isEmpty else { return [] }
        defer { changed = [] }
        return changed
    }

    /// The records of a session's rooms to store on disk.
    func stored(of session: SessionID) -> [StoredPlace] {
        rooms(of: session).compactMap { room in
            occupant(session, in: room).map {
                StoredPlace(room: room, role: $0.participant.role?.rawValue, data: $0.participant.data)
            }
        }
    }

    /// Takes in the places that a session has on disk.
    mutating func restore(_ places: [StoredPlace], of session: Session) {
        for place in places {
            let participant = RoomJoin.Participant(
                connection: session.name, user: session.endpoint.user,
                role: place.role.flatMap(RoomRole.init(rawValue:)), data: place.data)
            add(
                Occupant(session: session.id, endpoint: session.endpoint, participant: participant),
                to: place.room)
        }
    }

    // MARK: - Within

    /// Whether `room`, or `session` with its rooms, has reached its capacity.
    private func isFull(_ room: RoomName, for session: SessionID) -> Bool {
        occupants(of: room).count >= Self.participants
            || (roomsBySession[session]?.count ?? 0) >= Self.roomsPerSession
    }

    private mutating func add(_ occupant: Occupant, to room: RoomName) {
        lastNumber += 1
        var occupant = occupant
        occupant.number = lastNumber
        if occupantsByRoom[room] == nil { names.insert(room, at: names.sortedIndex(behind: { $0 >= room })) }
        occupantsByRoom[room, default: []].append(occupant)
        roomsBySession[occupant.session, default: []].append(room)
    }

    /// Removes a session from a room, and notifies the remaining participants.
    ///
    /// - Parameter leaver: Its device, if that does not know yet.
    /// - Returns: Whether it was in the room.
    private mutating func remove(
        _ session: SessionID, from room: RoomName, reason: String, _ effects: inout Effects,
        informs leaver: Endpoint? = nil
    ) -> Bool {
        guard let index = occupantsByRoom[room]?.firstIndex(where: { $0.session == session }),
            let left = occupantsByRoom[room]?.remove(at: index)
        else { return false }
        if occupantsByRoom[room]?.isEmpty == true {
            occupantsByRoom[room] = nil
            let index = names.sortedIndex(behind: { $0 >= room })
            if index < names.count, names[index] == room { names.remove(at: index) }
        }
        roomsBySession[session]?.removeAll { $0 == room }
        if roomsBySession[session]?.isEmpty == true { roomsBySession[session] = nil }
        changed.insert(session)
        let destroyed = effects.body(
            of: .connectionDestroyed(
                ConnectionDestroyed(room: room, connection: left.participant.connection, reason: reason)))
        for endpoint in occupants(of: room).map(\.endpoint) + [leaver].compactMap({ $0 }) {
            effects.notify(endpoint, destroyed)
        }
        return true
    }

    private static let unknownRoom = RPCError(
        .unknownRoom, "This connection, or the recipient of the signal, is not in that room.")
}
