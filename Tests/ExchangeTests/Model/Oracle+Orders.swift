@testable import ExchangeCore
import SignalWire
import Core

/// What the operator's orders do, by docs/exchange-control.md.
extension Oracle {
    /// Takes an order in that is about to be given.
    ///
    /// - Returns: Whether the exchange may answer so. Sessions that can no longer be resumed may be there until the timer has had its turn.
    func expect(_ order: OperatorOrder) -> (OperatorResult) -> Bool {
        switch order {
        case .logOut(let user):
            let own = seats.values.filter { $0.user == user.text && isAlive($0) }
            endLogins(of: user.text)
            endByOperator(own)
            let isKnown = accounts.contains(user.text) || !own.isEmpty
            return { Self.isDone($0, atLeast: own.count) || (!isKnown && $0 == .refused(.unknownUser)) }
        case .endSession(let user, let device):
            let own = seats.values.filter { $0.user == user.text && $0.place.device == device.text && isAlive($0) }
            endByOperator(own)
            return { Self.isDone($0, atLeast: max(1, own.count)) || (own.isEmpty && $0 == .refused(.noSession)) }
        case .endInvite(let id): return expectEnd(of: id.text)
        case .endCall(let id, let user): return expectEnd(ofCall: id.text, with: user?.text)
        case .removeFromRoom(let room, let user, let connection):
            return expectRemoval(of: user.text, connection?.text, fromRoom: room.text)
        case .removeFromGroup(let id, let user): return expectRemoval(of: user.text, fromGroup: id.text)
        case .move(let user, let device, _, _):
            let asked = seats.values.filter { seat in
                seat.user == user.text && (device == nil || seat.place.device == device?.text)
                    && seat.connection.map { closed[$0] == nil } ?? false
            }
            for seat in asked { expect("moveRequested", of: seat) }
            return { asked.isEmpty || Self.isDone($0, atLeast: asked.count) }
        }
    }

    private static func isDone(_ result: OperatorResult, atLeast count: Int) -> Bool {
        if case .done(let ended) = result { ended >= count } else { false }
    }

    private func endByOperator(_ own: [Seat]) {
        for seat in own {
            endedByOperator.insert(seat.id)
            drop(seat)
        }
    }

    private func expectEnd(of id: String) -> (OperatorResult) -> Bool {
        guard let invite = invites[id], !invite.isOver else {
            // How long it is remembered is not the operator's to know.
            return { $0 == .refused(.inviteEnded) || $0 == .refused(.unknownInvite) }
        }
        endedByOperator.insert(id)
        let pending = invite.pending.count
        return { $0 == .done(ended: pending) }
    }

    private func expectEnd(ofCall id: String, with user: String?) -> (OperatorResult) -> Bool {
        let running = (calls[id] ?? []).filter { call in user.map { call.invitee.bearer == account($0) } ?? true }
        guard let call = running.first else { return { $0 == .refused(.unknownCall) } }
        // A call ends with a session that can no longer be resumed, once the timer has had its turn.
        guard running.allSatisfy({ isAlive(seat(at: $0.inviter)) && isAlive(seat(at: $0.invitee)) }) else {
            return { [.done(ended: 1), .refused(.unknownCall), .refused(.severalCalls)].contains($0) }
        }
        guard running.count == 1 else { return { $0 == .refused(.severalCalls) } }
        calls[id]?.removeAll { $0 == call }
        for (place, peer) in [(call.inviter, call.invitee), (call.invitee, call.inviter)] {
            guard case .account(let name) = peer.bearer else { continue }
            // A name that has been given again is called as before.
            let shown = name.split(separator: " ").first.map(String.init) ?? name
            expect("callEnded \(id) \(shown)", of: seat(at: place))
        }
        return { $0 == .done(ended: 1) }
    }

    private func expectRemoval(
        of user: String, _ connection: String?, fromRoom room: String
    ) -> (OperatorResult) -> Bool {
        let removed = occupants(of: room).filter { seat in
            seat.user == user && (connection == nil || seat.name == connection) && isAlive(seat)
        }
        guard !removed.isEmpty else { return { _ in true } }
        for seat in removed {
            rooms[room]?.remove(seat.id)
            seats[seat.id]?.rooms.remove(room)
        }
        for seat in removed {
            for other in occupants(of: room) + [seat] { expect("connectionDestroyed \(room) \(seat.name)", of: other) }
        }
        return { Self.isDone($0, atLeast: removed.count) }
    }

    private func expectRemoval(of user: String, fromGroup id: String) -> (OperatorResult) -> Bool {
        guard let group = groups[id] else { return { $0 == .refused(.unknownGroup) } }
        guard group.members.contains(user) else { return { $0 == .refused(.noMember) } }
        guard group.owner != user else { return { $0 == .refused(.isOwner) } }
        groups[id]?.members.removeAll { $0 == user }
        notify(group.members, "groupChanged \(id) left \(user)")
        return { $0 == .done(ended: 1) }
    }
}
