@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import Testing
import Core

/// Everything that Alice and Bob have, tried by Carol and a guest, who know all the ids.
private struct Trespass {
    var exchange = ExchangeScenario()
    let alice: ConnectionID
    let bob: ConnectionID
    let strangers: [ConnectionID]
    let pending: InviteID
    let call: InviteID
    let hidden: InviteID

    init() {
        alice = exchange.device("a", of: "alice")
        bob = exchange.device("b", of: "bob")
        strangers = [
            exchange.device("c", of: "carol"), exchange.device("a", of: "carol"), exchange.device("b", of: "carol"),
        ]
        _ = exchange.request(.groupCreate(GroupCreate(group: "private", members: ["bob"])), from: alice)
        pending = exchange.invite("bob", from: alice, data: "secret", ttl: 300, key: "1")
        call = exchange.invite("bob", from: alice, key: "2")
        _ = exchange.request(.inviteAccept(InviteAccept(invite: call)), from: bob)
        let send = InviteSend(to: ["bob"], group: "private", ttl: 300, idempotencyKey: "3")
        hidden =
            if case .success(.invite(let result)) = exchange.request(.inviteSend(send), from: alice) {
                result.invite
            } else { "" }
        _ = exchange.request(.roomJoin(RoomJoin(room: "room")), from: alice)
        for device in [alice, bob] + strangers { _ = exchange.events(of: device) }
    }

    /// What each request must be refused with, under one invite's id.
    func attempts(on invite: InviteID) -> [(ClientRequest, Set<RPCErrorCode>)] {
        let name = exchange.session(on: alice)?.name
        return [
            (.inviteAccept(InviteAccept(invite: invite)), [.notYours]),
            (.inviteReject(InviteReject(invite: invite)), [.notYours]),
            (.inviteCancel(InviteCancel(invite: invite)), [.notYours]),
            (.inviteModify(InviteModify(invite: invite, data: "mine")), [.notYours]),
            (.callSignal(CallSignal(invite: invite, type: "t")), [.notYours]),
            (.callSignal(CallSignal(invite: invite, type: "t", peer: "bob")), [.notYours]),
            (.callSignal(CallSignal(invite: invite, type: "t", peer: "alice")), [.notYours]),
            (hangUp(invite, nil), [.notYours, .unknownCall]),
            (hangUp(invite, "bob"), [.notYours, .unknownCall]),
            (hangUp(invite, "alice"), [.notYours, .unknownCall]),
            (.inviteSend(InviteSend(to: ["bob"], group: "private", ttl: 1, idempotencyKey: "k")), [.unknownGroup]),
            (.groupMembers(GroupMembers(group: "private")), [.unknownGroup]),
            (.groupLeave(GroupLeave(group: "private")), [.unknownGroup]),
            (.groupDismiss(GroupDismiss(group: "private")), [.unknownGroup]),
            (.groupCreate(GroupCreate(group: "private")), [.groupExists]),
            (.roomSignal(RoomSignal(room: "room", type: "t")), [.unknownRoom]),
            (.roomSignal(RoomSignal(room: "room", to: name, type: "t")), [.unknownRoom]),
            (.roomLeave(RoomLeave(room: "room")), [.unknownRoom]),
        ]
    }

    private func hangUp(_ invite: InviteID, _ peer: UserID?) -> ClientRequest {
        .callEnd(CallEnd(invite: invite, reason: "completed", durationMilliseconds: 1, peer: peer))
    }
}

@Suite struct TrespassTests {
    @Test("No user sees, answers or ends another's invites, groups, rooms and calls, even with known ids")
    func everyMethod() {
        var trespass = Trespass()
        for invite in [trespass.pending, trespass.call, trespass.hidden] {
            for (request, codes) in trespass.attempts(on: invite) {
                for stranger in trespass.strangers {
                    let code = trespass.exchange.refusal(of: request, from: stranger)
                    #expect(code.map(codes.contains) == true, "\(request): \(String(describing: code))")
                }
            }
        }
        for device in [trespass.alice, trespass.bob] + trespass.strangers {
            #expect(trespass.exchange.events(of: device).isEmpty, "nobody hears of any of it")
        }
        let core = trespass.exchange.core
        #expect(core.invites.calls.count == 1 && core.groups["private"]?.members == ["alice", "bob"])
        let pending = core.invites[trespass.pending]
        #expect(pending?.data?.value == "secret" && pending?.pending == ["bob"])
    }

    @Test("The lists of invites, groups and what waits for a device that registers hold a user's own alone")
    func lists() {
        var trespass = Trespass()
        for stranger in trespass.strangers {
            #expect(
                trespass.exchange.request(.inviteList(InviteList()), from: stranger)
                    == .success(.invites(.init(entries: []))))
            #expect(
                trespass.exchange.request(.groupList(GroupList()), from: stranger)
                    == .success(.groups(.init(groups: []))))
        }
        let device = DeviceDescription(id: "c", name: "c")
        let register = ClientRequest.deviceRegister(DeviceRegister(device: device, start: .warm))
        _ = trespass.exchange.request(register, from: trespass.strangers[0])
        #expect(trespass.exchange.events(of: trespass.strangers[0]).isEmpty)
    }

    @Test("A session is resumed only by the device that had it, with its user's token")
    func sessions() {
        for (user, device) in [("carol", "a"), ("alice", "other"), ("guest", "a")] as [(UserID, DeviceID)] {
            var trespass = Trespass()
            let resume = trespass.exchange.resumePoint(of: trespass.alice)
            trespass.exchange.feed(.disconnected(trespass.alice))
            _ = trespass.exchange.invite("alice", from: trespass.bob, key: "secret")
            let thief = trespass.exchange.connect()
            let start = SessionStart(
                token: Redacted("token of \(user)"), device: DeviceDescription(id: device, name: ""),
                resume: resume.map { .init(session: $0.session, after: 0) })
            guard case .success(.session(let result)) = trespass.exchange.request(.sessionStart(start), from: thief)
            else { return #expect(Bool(false), "no session") }
            #expect(!result.resumed && result.session != resume?.session)
            #expect(trespass.exchange.events(of: thief).isEmpty)
        }
    }

    @Test("An idempotency key is its user's own: another's gives no invite away")
    func keys() {
        var trespass = Trespass()
        let invite = trespass.exchange.invite("bob", from: trespass.strangers[0], key: "1")
        #expect(invite != trespass.pending && invite != "none")
    }
}
