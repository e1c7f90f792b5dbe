import SignalWire
import Timekeeping

/// Rooms: who is there, and what they say to each other (CONN-7, SIG-1).
extension ExchangeCore {
    mutating func joinRoom(
        _ params: RoomJoin, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> RoomJoin.Result {
        let room = params.room
        let terms = try roomTerms(params, session, at: now)
        let others = rooms.occupants(of: room).filter { $0.session != session.id }
        let page = Page(
            others.lazy.filter { $0.number > params.after ?? 0 }.map { ($0.number, $0.participant) })
        let result = RoomJoin.Result(participants: page.entries, next: page.next)
        guard rooms.occupant(session.id, in: room) == nil else { return result }
        guard !rooms.isFull(room, for: session.id) else {
            throw RPCError(.tooManyRequests, "The room is full, or this connection is in too many rooms.")
        }
        let participant = RoomJoin.Participant(
            connection: session.name, user: session.endpoint.user, role: terms?.role, data: terms?.data ?? params.data)
        let created = body(
            of: .connectionCreated(
                ConnectionCreated(
                    room: room, connection: participant.connection, user: participant.user, role: participant.role,
                    data: participant.data)))
        let place = 2 * Weight.place + (participant.data?.utf8.count ?? 0)
        try afford(place + cost(of: created, for: others.count))
        rooms.join(room, Occupant(session: session.id, endpoint: session.endpoint, participant: participant))
        sessions.note(session)
        for other in others {
            tell(other.endpoint, created, at: now, into: &outbox)
            // The newcomer learns of the room as it stands: this one is listed, but cannot be reached just now.
            guard sessions.isMissing(other.session) else { continue }
            let dropped = StreamChange(
                room: room, connection: other.participant.connection, user: other.participant.user)
            tell(session.endpoint, .streamDropped(dropped), at: now, into: &outbox)
        }
        return result
    }

    /// What a signed token says of the session's part in a room, if there is one.
    private func roomTerms(
        _ params: RoomJoin, _ session: Session, at now: Instant
    ) throws(RPCError) -> Grant.RoomGrant? {
        guard (params.data?.utf8.count ?? 0) <= SignalLimits.connectionDataBytes else {
            throw RPCError(
                .tooLarge, "data has at most \(SignalLimits.connectionDataBytes) bytes.",
                limit: SignalLimits.connectionDataBytes)
        }
        let terms: Grant.RoomGrant?
        if let token = params.token {
            let grant = try grant(for: token, at: now)
            guard grant.user == session.endpoint.user else {
                throw RPCError(.tokenRejected, "The token is another user's.")
            }
            terms = grant.room
        } else {
            terms = session.room
        }
        for bound in [terms?.room, session.room?.room].compactMap({ $0 }) where bound != params.room {
            throw RPCError(.tokenForAnotherSession, "The token is good for another session.")
        }
        return terms
    }

    mutating func leaveRoom(
        _ room: RoomName, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        guard leave(room, session.id, reason: "left", at: now, into: &outbox) else { throw Self.unknownRoom }
    }

    mutating func leaveRooms(
        _ session: SessionID, reason: String, at now: Instant, into outbox: inout [Output]
    ) {
        for room in rooms.rooms(of: session) {
            _ = leave(room, session, reason: reason, at: now, into: &outbox)
        }
    }

    private mutating func leave(
        _ room: RoomName, _ session: SessionID, reason: String, at now: Instant, into outbox: inout [Output]
    ) -> Bool {
        guard let left = rooms.leave(room, session) else { return false }
        sessions.note(sessions.session(session))
        let destroyed = body(
            of: .connectionDestroyed(
                ConnectionDestroyed(room: room, connection: left.participant.connection, reason: reason)))
        for other in rooms.occupants(of: room) { tell(other.endpoint, destroyed, at: now, into: &outbox) }
        return true
    }

    /// Passes a signal to one participant of a room, or to all of them in one order (SIG-1).
    mutating func signalRoom(
        _ params: RoomSignal, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        try Self.checkSignal(type: params.type, params.data)
        guard let sender = rooms.occupant(session.id, in: params.room) else { throw Self.unknownRoom }
        var receivers = rooms.occupants(of: params.room)
        if let name = params.to {
            receivers.removeAll { $0.participant.connection != name }
            guard !receivers.isEmpty else { throw Self.unknownRoom }
        }
        let signal = body(
            of: .roomSignal(
                RoomSignalled(
                    room: params.room, type: params.type, data: params.data, from: sender.participant.connection,
                    user: sender.participant.user)))
        try afford(cost(of: signal, for: receivers.count))
        for receiver in receivers { tell(receiver.endpoint, signal, at: now, into: &outbox) }
    }

    private static let unknownRoom = RPCError(
        .unknownRoom, "This connection, or the one that the signal is for, is not in that room.")
}
