@testable import ExchangeCore
import JSON
import SignalWire
import Testing
import Core

/// What is on disk after some changes.
private func saved(_ changes: [Change]) -> Saved {
    var saved = Saved()
    for change in changes {
        switch change {
        case .token(let token): saved.tokens.append(token)
        case .login(let login): saved.logins = saved.logins.filter { $0.id != login.id } + [login]
        case .session(let session): saved.sessions = saved.sessions.filter { $0.id != session.id } + [session]
        case .sessionForgotten(let id): saved.sessions.removeAll { $0.id == id }
        case .group(let group): saved.groups = saved.groups.filter { $0.id != group.id } + [group]
        case .groupForgotten(let id): saved.groups.removeAll { $0.id == id }
        case .pushTargets(let entry):
            saved.pushTargets.removeAll { $0.user == entry.user && $0.device == entry.device }
            if !entry.targets.isEmpty { saved.pushTargets.append(entry) }
        case .invite(let invite): saved.invites = saved.invites.filter { $0.id != invite.id } + [invite]
        case .call(let call): saved.calls.append(call)
        case .event(let event): saved.events.append(event)
        case .tokenForgotten, .loginForgotten, .inviteForgotten, .callForgotten, .sequenceReserved, .eventsForgotten,
            .streamForgotten, .record, .pruned, .eventsPruned, .push, .pushForgotten, .pushDied, .deadPushesPruned,
            .acquaintance, .acquaintanceForgotten, .acquaintancesForgotten, .userAdded, .userForgotten,
            .fileUsers, .letter, .lettersForgotten, .letterMarks:
            break
        }
    }
    return saved
}

@Suite struct RestoredPlacesTests {
    @Test("INV-16, GRP-1, DEV-2: Groups, their invites as modified, and push tokens are there after a restart")
    func groups() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        for group in ["kept", "dismissed"] as [GroupID] {
            _ = scenario.request(.groupCreate(GroupCreate(group: group, name: "G", members: ["bob"])), from: alice)
        }
        _ = scenario.request(.groupDismiss(GroupDismiss(group: "dismissed")), from: alice)
        let carol = scenario.device("c", of: "carol")
        _ = scenario.request(.groupJoin(GroupJoin(group: "kept")), from: carol)
        _ = scenario.request(.groupLeave(GroupLeave(group: "kept")), from: bob)
        let send = InviteSend(to: ["carol"], group: "kept", data: "old", ttl: 60, idempotencyKey: "k")
        guard case .success(.invite(let sent)) = scenario.request(.inviteSend(send), from: alice) else {
            return #expect(Bool(false), "no invite")
        }
        _ = scenario.request(.inviteModify(InviteModify(invite: sent.invite, data: "new")), from: alice)
        let target = DeviceRegister.PushTarget(kind: "apns", token: Redacted("t"))
        let device = DeviceDescription(id: "b", name: "b")
        _ = scenario.request(.deviceRegister(DeviceRegister(device: device, push: [target])), from: bob)

        var core = ExchangeCore(accounts: ExchangeScenario.users, run: 2)
        core.restore(saved(scenario.changes), at: .zero)
        let group = Group(id: "kept", name: "G", owner: "alice", members: ["alice", "carol"])
        #expect(core.groups["kept"] == group && core.groups["dismissed"] == nil)
        #expect(core.groups.owns("alice") == 1 && core.groups.joins("bob") == 0)
        #expect(core.pushes.entries(of: "bob") == [.init(device: "b", targets: [target])])
        #expect(core.invites[sent.invite]?.data?.value == "new" && core.invites[sent.invite]?.group == "kept")
        #expect(core.invites.inGroup("kept") == [sent.invite] && core.invites.received(by: "carol").count == 1)
        var outbox: [ExchangeCore.Output] = []
        core.handle(.timer, at: .zero, into: &outbox)
        #expect(!outbox.contains { if case .persist(.group) = $0 { true } else { false } }, "nothing is written again")
    }

    @Test("CONN-7, CONN-8: A participant resumes after a restart as the one that it was, with its place in its rooms")
    func places() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        for device in [alice, bob] {
            _ = scenario.request(.roomJoin(RoomJoin(room: "r", data: "d")), from: device)
        }
        let resume = scenario.resumePoint(of: bob)
        let places = scenario.core.rooms.occupants(of: "r")

        var core = ExchangeCore(accounts: ExchangeScenario.users, run: 2)
        core.restore(saved(scenario.changes), at: .zero)
        #expect(Set(core.rooms.occupants(of: "r")) == Set(places))
        var outbox: [ExchangeCore.Output] = []
        let connection = ConnectionID(number: 1)
        core.handle(.connected(connection), at: .zero, into: &outbox)
        let start = SessionStart(
            token: Redacted("token of bob"), device: DeviceDescription(id: "b", name: "b"), resume: resume)
        core.handle(.request(connection, .number(1), .sessionStart(start)), at: .zero, into: &outbox)
        #expect(core.sessions[connection]?.name == places.last?.participant.connection)
        let resumed = outbox.contains {
            if case .event(_, let numbered) = $0, case .streamResumed = numbered.event { true } else { false }
        }
        #expect(!resumed, "of a drop that nobody heard of nobody hears the end")
        outbox = []
        core.handle(.timer, at: .zero.advanced(by: .seconds(60)), into: &outbox)
        #expect(core.rooms.occupants(of: "r").map(\.endpoint.user) == ["bob"], "Alice did not come back in time")
    }
}
