import SignalWire
import Timekeeping

/// What peers hear when a connection is lost, comes back (CONN-8), or is to move (CONN-12).
extension ExchangeCore {
    /// Tells the peers of a session, in its rooms and its device's calls, that its connection was lost.
    mutating func tellDropped(_ session: Session, at now: Instant, into outbox: inout [Output]) {
        tellRooms(of: session, ExchangeEvent.streamDropped, at: now, into: &outbox)
        tellCalls(of: session, ExchangeEvent.streamDropped, at: now, into: &outbox)
    }

    /// Tells them that it is there again.
    mutating func tellResumed(_ session: Session, at now: Instant, into outbox: inout [Output]) {
        tellRooms(of: session, ExchangeEvent.streamResumed, at: now, into: &outbox)
        tellCalls(of: session, ExchangeEvent.streamResumed, at: now, into: &outbox)
    }

    private mutating func tellRooms(
        of session: Session, _ event: (StreamChange) -> ExchangeEvent, at now: Instant, into outbox: inout [Output]
    ) {
        for room in rooms.rooms(of: session.id) {
            let change = StreamChange(room: room, connection: session.name, user: session.endpoint.user)
            let others = rooms.occupants(of: room).filter { $0.session != session.id }
            let told = body(of: event(change))
            for other in others { tell(other.endpoint, told, at: now, into: &outbox) }
        }
    }

    private mutating func tellCalls(
        of session: Session, _ event: (StreamChange) -> ExchangeEvent, at now: Instant, into outbox: inout [Output]
    ) {
        for call in calls.calls(of: session.endpoint) {
            guard let peer = call.peer(of: session.endpoint) else { continue }
            let change = StreamChange(
                invite: call.id.invite, connection: session.name, user: session.endpoint.user)
            tell(peer, event(change), at: now, into: &outbox)
        }
    }

    /// Asks every device to connect anew, here or elsewhere; now or never, for who connects has moved.
    mutating func requestMoves(within: Duration, to url: String?, into outbox: inout [Output]) {
        let event = body(
            of: .moveRequested(MoveRequested(withinSeconds: max(0, within.seconds), webSocketURL: url)))
        for session in sessions.all where !session.isInternal { sendTransient(event, to: session, into: &outbox) }
    }
}
