@testable import ExchangeCore
import SignalSupport
import SignalWire
import Testing
import Core

private func session(_ user: UserID, _ number: UInt64) -> Session {
    Session(
        id: SessionID(ours: "s\(number)"), name: ConnectionName(ours: "c\(number)"),
        connection: ConnectionID(number: number), endpoint: Endpoint(user: user, device: "d"),
        device: DeviceDescription(id: "d", name: "d"))
}

extension Effects {
    /// Whom events are for, in order.
    fileprivate var told: [Principal] {
        (0..<count).compactMap { if case .notify(let principal, _, _) = self[$0] { principal } else { nil } }
    }
}

@Suite("A part of the exchange's core changes itself, and asks for the rest") struct EffectsTests {
    @Test("Users who join and leave a room are reported to the others, in the order in which it happened")
    func room() throws {
        let sessions = Sessions(.init())
        var rooms = Rooms()
        var effects = Effects(.init(), run: 1)
        for (number, user) in ["alice", "bob", "carol"].enumerated() {
            let session = session(UserID(ours: user), UInt64(number))
            _ = try rooms.join(RoomJoin(room: "r"), session, shown: nil, sessions, &effects)
        }
        #expect(effects.told.map(\.user) == ["alice", "alice", "bob"])
        #expect(rooms.takeChanged() == ["s0", "s1", "s2"])
        effects.removeAll()
        try rooms.leave("r", "s1", &effects)
        #expect(effects.told.map(\.user) == ["alice", "carol"])
        #expect(throws: RPCError.self) { try rooms.leave("r", "s1", &effects) }
        #expect(effects.count == 2 && rooms.takeChanged() == ["s1"])
    }

    @Test("What the budget has no room for is refused before anything changes, and counted by whose fault it is")
    func noRoom() {
        var groups = Groups()
        var effects = Effects(StorageQuota.Limits(total: 1 << 20, user: 1_000), run: 1)
        effects.budget.act(for: .account("alice"))
        func code(_ make: () throws -> Void) -> RPCErrorCode? {
            do { try make() } catch { return (error as? RPCError)?.known }
            return nil
        }
        let directory = AccountDirectory([Account(id: "alice")])
        #expect(
            code { _ = try groups.create(GroupCreate(), by: "alice", directory, Acquaintances(), &effects) }
                == .tooManyRequests)
        #expect(groups.owns("alice") == 0 && effects.count == 0)
        #expect(effects.counters.overBudget == 1 && effects.counters.overload == 0)

        effects = Effects(StorageQuota.Limits(total: 1_000, user: 1 << 20), run: 1)
        effects.budget.act(for: .account("alice"))
        #expect(
            code { _ = try groups.create(GroupCreate(), by: "alice", directory, Acquaintances(), &effects) }
                == .tooManyRequests)
        #expect(effects.counters.overBudget == 0 && effects.counters.overload == 1)
    }

    @Test("A recurring task is planned once until it begins")
    func tasks() {
        var deadlines = Deadlines()
        deadlines.plan(.pruning, due: .zero)
        deadlines.plan(.pruning, due: .zero)
        deadlines.plan(.tokenSweep, due: .zero.advanced(by: .seconds(1)))
        #expect(deadlines.count == 2)
        #expect(deadlines.takeDue(at: .zero) == .pruningIsDue)
        deadlines.plan(.pruning, due: .zero)
        #expect(deadlines.count == 1, "it has not begun")
        deadlines.begin(.pruning)
        deadlines.plan(.pruning, due: .zero)
        #expect(deadlines.count == 2 && deadlines.takeDue(at: .zero) == .pruningIsDue)
    }
}
