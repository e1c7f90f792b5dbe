@testable import ExchangeCore
import SignalWire
import Core

/// The operator acts among what the attackers do.
extension AttackersModel {
    /// The operator gives an order: mostly about what is there.
    func giveOrder() throws {
        guard let order = pickOrder() else { return }
        note("the operator: \(order)")
        let isAllowed = oracle.expect(order)
        let number = OrderNumber(UInt64(steps))
        var results: [OperatorResult] = []
        for case .obeyed(number, let result) in try feed(.ordered(number, order)) { results.append(result) }
        try oracle.require(results.count == 1, "an order has \(results.count) answers")
        try oracle.require(results.allSatisfy(isAllowed), "\(order) is answered \(results)")
        let kind = "\(order)".prefix { $0 != "(" }
        oracle.count(
            results.allSatisfy { if case .done = $0 { true } else { false } } ? "done: \(kind)" : "not done: \(kind)")
    }

    private func pickOrder() -> OperatorOrder? {
        switch wire.number(0...6) {
        case 0:
            // A correct client's user is not logged out.
            return wire.pick(Self.attackers + Self.guests + ["nobody"]).map { .logOut(UserID(ours: $0)) }
        case 1: return pickSeat().map { .endSession(UserID(ours: $0.user), DeviceID(ours: $0.place.device)) }
        case 2:
            let id = wire.pick(wire.chance(80) ? open() : oracle.invites.keys.sorted())
            return .endInvite(InviteID(ours: id ?? "none"))
        case 3:
            guard let id = wire.pick(oracle.calls.filter { !$0.value.isEmpty }.keys.sorted()) else { return nil }
            let user = wire.pick((oracle.calls[id] ?? []).compactMap { oracle.seat(at: $0.invitee)?.user }.sorted())
            return .endCall(InviteID(ours: id), with: wire.chance(50) ? user.map { UserID(ours: $0) } : nil)
        case 4:
            guard let room = wire.pick(oracle.rooms.filter { !$0.value.isEmpty }.keys.sorted()) else { return nil }
            let seats = oracle.occupants(of: room).sorted { $0.id < $1.id }
            guard let seat = wire.pick(seats) else { return nil }
            let name = wire.chance(70) ? ConnectionName(ours: seat.name) : nil
            return .removeFromRoom(RoomName(ours: room), UserID(ours: seat.user), name)
        case 5:
            guard let id = wire.pick(oracle.groups.keys.sorted()) else { return nil }
            let user = wire.pick((oracle.groups[id]?.members ?? []) + Self.attackers) ?? ""
            return .removeFromGroup(GroupID(ours: id), UserID(ours: user))
        default:
            return pickSeat().map { seat in
                let device = wire.chance(50) ? DeviceID(ours: seat.place.device) : nil
                return .move(UserID(ours: seat.user), device, within: .seconds(wire.number(0...30)), to: nil)
            }
        }
    }

    private func pickSeat() -> Oracle.Seat? { wire.pick(oracle.seats.values.sorted { $0.id < $1.id }) }

    private func open() -> [String] { oracle.invites.values.filter { !$0.isOver }.map(\.id).sorted() }
}
