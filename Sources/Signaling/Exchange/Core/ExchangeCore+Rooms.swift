import SignalWire
import Timekeeping

/// Rooms, and what falls due.
extension ExchangeCore {
    mutating func joinRoom(
        _ room: RoomName, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> RoomJoin.Result {
        guard !room.isEmpty else { throw RPCError(.invalidParams, "room must not be empty.") }
        if let own = session.room?.room, own != room {
            throw RPCError(
                .tokenForAnotherSession, "The token of this login is good for one session, and this is another.")
        }
        guard room.utf8.count <= SignalLimits.nameBytes else {
            throw RPCError(
                .tooLarge, "room has at most \(SignalLimits.nameBytes) bytes.", limit: SignalLimits.nameBytes)
        }
        let others = rooms.connections(in: room).filter { $0 != session.connection }.compactMap { sessions[$0] }
        let result = RoomJoin.Result(participants: others.map(\.participant))
        guard !rooms.connections(in: room).contains(session.connection) else { return result }
        guard !rooms.isFull(room, for: session.connection) else {
            throw RPCError(.tooManyRequests, "The room is full, or this connection is in too many rooms.")
        }
        rooms.join(room, session.connection)
        let created = ConnectionCreated(
            room: room, connection: session.connection.name, user: session.endpoint.user.name)
        for other in others { tell(other.endpoint, .connectionCreated(created), at: now, into: &outbox) }
        return result
    }

    mutating func leaveRoom(
        _ room: RoomName, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        guard leave(room, session, reason: "left", at: now, into: &outbox) else {
            throw RPCError(.unknownRoom, "This connection is not in that room.")
        }
    }

    mutating func leaveRooms(
        _ session: Session, reason: String, at now: Instant, into outbox: inout [Output]
    ) {
        for room in rooms.rooms(of: session.connection) {
            _ = leave(room, session, reason: reason, at: now, into: &outbox)
        }
    }

    private mutating func leave(
        _ room: RoomName, _ session: Session, reason: String, at now: Instant, into outbox: inout [Output]
    ) -> Bool {
        guard rooms.leave(room, session.connection) else { return false }
        let destroyed = ConnectionDestroyed(room: room, connection: session.connection.name, reason: reason)
        for other in rooms.connections(in: room).compactMap({ sessions[$0] }) {
            tell(other.endpoint, .connectionDestroyed(destroyed), at: now, into: &outbox)
        }
        return true
    }

    /// Does what is due; much of it has long been settled otherwise.
    mutating func meet(_ deadline: Deadline, at now: Instant, into outbox: inout [Output]) {
        switch deadline {
        case .inviteTimesOut(let id): timeOutInvite(id, at: now, into: &outbox)
        case .inviteIsForgotten(let id): forgetInvite(id)
        case .sessionIsForgotten(let id): sessions.forget(id, at: now)
        case .callMayBeOrphaned(let invite): dropOrphan(invite, at: now, into: &outbox)
        case .tokensAreSwept: sweepTokens(at: now)
        case .tokenIsChecked(let connection): checkToken(on: connection, at: now, into: &outbox)
        case .loginIsDue(let connection):
            guard let state = connections[connection], state.loginDue <= now, sessions[connection] == nil else {
                return
            }
            outbox.append(.close(connection, .policy("no session was started in time")))
            outbox.append(.note(.connectionRefused(connection, reason: "no session was started in time")))
        }
    }
}
