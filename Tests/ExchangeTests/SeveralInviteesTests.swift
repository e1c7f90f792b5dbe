@testable import ExchangeCore
import JSON
import SignalWire
import Testing
import Core

/// Alice asks Bob and Carol at once.
private struct Conference {
    var exchange = ExchangeScenario()
    let alice: ConnectionID
    let bob: ConnectionID
    let carol: ConnectionID
    private(set) var invite: InviteID = "none"

    init(ttl: Double = 30, data: JSONValue? = nil) {
        alice = exchange.device("a", of: "alice")
        bob = exchange.device("b", of: "bob")
        carol = exchange.device("c", of: "carol")
        let send = InviteSend(
            to: ["bob@localhost", "carol", "bob"], data: data, ttl: ttl, timeoutPayload: "missed", idempotencyKey: "k")
        if case .success(.invite(let result)) = exchange.request(.inviteSend(send), from: alice) {
            invite = result.invite
        }
    }

    mutating func accept(_ device: ConnectionID) {
        _ = exchange.request(.inviteAccept(InviteAccept(invite: invite)), from: device)
    }

    mutating func reject(_ device: ConnectionID) {
        _ = exchange.request(.inviteReject(InviteReject(invite: invite)), from: device)
    }

    /// What Alice, Bob and Carol have heard since last asked.
    mutating func heard() -> [[ExchangeEvent]] { [alice, bob, carol].map { exchange.events(of: $0) } }

    func answer(_ user: UserID, _ device: DeviceID) -> InviteAnswered {
        InviteAnswered(invite: invite, invitee: user, device: device)
    }
    var ended: ExchangeEvent { .inviteEnded(InviteEnded(invite: invite)) }
    var missed: ExchangeEvent { .inviteMissed(InviteMissed(invite: invite, payload: "missed")) }
}

@Suite struct SeveralInviteesTests {
    @Test("INV-2: Each of several invitees hears the invite once, with all of those who are asked")
    func received() {
        var conference = Conference(data: "hi")
        let received = ExchangeEvent.inviteReceived(
            InviteReceived(
                invite: conference.invite, inviter: "alice", invitees: ["bob", "carol"], data: "hi", ttlRemaining: 30))
        #expect(conference.heard() == [[], [received], [received]])
    }

    @Test("INV-3: The invite ends when every invitee has accepted, rejected or timed out, and not before")
    func ends() {
        var conference = Conference(ttl: 20)
        _ = conference.heard()
        conference.accept(conference.bob)
        #expect(conference.heard() == [[.inviteAccepted(conference.answer("bob", "b"))], [], []])
        conference.reject(conference.carol)
        #expect(conference.heard() == [[.inviteRejected(conference.answer("carol", "c")), conference.ended], [], []])
        conference.exchange.advance(by: .seconds(20))
        #expect(conference.heard() == [[], [], []])
    }

    @Test("INV-6: The inviter cancels while one is pending: that one hears it, and who has answered does not")
    func cancel() {
        var conference = Conference()
        conference.accept(conference.bob)
        _ = conference.heard()
        let cancel = ClientRequest.inviteCancel(InviteCancel(invite: conference.invite, data: "enough"))
        #expect(conference.exchange.refusal(of: cancel, from: conference.alice) == nil)
        let cancelled = ExchangeEvent.inviteCancelled(InviteCancelled(invite: conference.invite, data: "enough"))
        #expect(conference.heard() == [[conference.ended], [], [cancelled, conference.missed]])
        #expect(conference.exchange.core.invites.calls.count == 1, "the call with Bob stands")
        #expect(conference.exchange.refusal(of: cancel, from: conference.alice) == .inviteEnded)
    }

    @Test("INV-7: At the ttl those who have not answered are named, and they alone get the timeout payload")
    func timeOut() {
        var conference = Conference(ttl: 20)
        conference.reject(conference.bob)
        _ = conference.heard()
        conference.exchange.advance(by: .seconds(20))
        let timedOut = ExchangeEvent.inviteTimedOut(InviteTimedOut(invite: conference.invite, invitees: ["carol"]))
        #expect(conference.heard() == [[timedOut, conference.ended], [], [timedOut, conference.missed]])
    }

    @Test("INV-15: The inviter modifies the data; those who are pending hear it, and who comes later gets it at once")
    func modify() {
        var conference = Conference(data: "old")
        conference.accept(conference.bob)
        _ = conference.heard()
        let modify = ClientRequest.inviteModify(InviteModify(invite: conference.invite, data: "new"))
        for other in [conference.bob, conference.carol] {
            #expect(conference.exchange.refusal(of: modify, from: other) == .notYours)
        }
        #expect(conference.exchange.refusal(of: modify, from: conference.alice) == nil)
        let modified = ExchangeEvent.inviteModified(InviteModified(invite: conference.invite, data: "new"))
        #expect(conference.heard() == [[], [], [modified]])

        let late = conference.exchange.device("c2", of: "carol", registers: false)
        let device = DeviceDescription(id: "c2", name: "")
        _ = conference.exchange.request(.deviceRegister(DeviceRegister(device: device)), from: late)
        guard case .inviteReceived(let received)? = conference.exchange.events(of: late).first else {
            return #expect(Bool(false), "no invite")
        }
        #expect(received.data == "new")
        conference.reject(conference.carol)
        #expect(conference.exchange.refusal(of: modify, from: conference.alice) == .inviteEnded)
        let unknown = ClientRequest.inviteModify(InviteModify(invite: "invite-0"))
        #expect(conference.exchange.refusal(of: unknown, from: conference.alice) == .unknownInvite)
    }

    @Test(
        "CALL-1, CALL-3: Each accepter has a call of its own, and once there are several the inviter says which it means"
    )
    func calls() {
        var conference = Conference()
        func signal(_ peer: UserID?) -> ClientRequest {
            .callSignal(CallSignal(invite: conference.invite, type: "t", peer: peer))
        }
        func hangUp(_ peer: UserID?) -> ClientRequest {
            .callEnd(CallEnd(invite: conference.invite, reason: "completed", durationMilliseconds: 1, peer: peer))
        }
        _ = conference.heard()
        func refusal(_ request: ClientRequest, _ device: ConnectionID) -> RPCErrorCode? {
            conference.exchange.refusal(of: request, from: device)
        }
        #expect(refusal(signal(nil), conference.alice) == nil)
        #expect(conference.heard().map(\.count) == [0, 1, 1], "to all that ring")
        #expect(refusal(signal("carol"), conference.alice) == nil)
        #expect(conference.heard().map(\.count) == [0, 0, 1])
        conference.accept(conference.bob)
        _ = conference.heard()
        #expect(refusal(signal(nil), conference.alice) == nil)
        #expect(conference.heard().map(\.count) == [0, 1, 0], "to the one who has accepted")
        #expect(refusal(signal("carol"), conference.alice) == nil)
        #expect(conference.heard().map(\.count) == [0, 0, 1], "Carol rings still")
        conference.accept(conference.carol)
        _ = conference.heard()
        #expect(refusal(signal(nil), conference.alice) == .invalidParams)
        #expect(refusal(hangUp(nil), conference.alice) == .invalidParams)
        #expect(refusal(signal("alice"), conference.alice) == .unknownCall)
        #expect(refusal(signal("carol"), conference.alice) == nil)
        #expect(refusal(signal(nil), conference.bob) == nil)
        #expect(conference.heard().map(\.count) == [1, 0, 1])

        #expect(refusal(hangUp(nil), conference.bob) == nil)
        #expect(refusal(hangUp(nil), conference.alice) == .invalidParams, "it may mean the one that is over")
        #expect(refusal(hangUp("bob"), conference.alice) == .unknownCall)
        #expect(refusal(hangUp("carol"), conference.alice) == nil)
        #expect(conference.heard().map(\.count) == [1, 0, 1])
        #expect(conference.exchange.core.invites.calls.count == 0)
    }

    @Test("INV-12: To several users, to none, to one too many, and to an unknown one")
    func bounds() {
        var settings = ExchangeCore.Settings()
        settings.invites.open = 2
        var scenario = ExchangeScenario(settings: settings)
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        func send(_ to: [UserID], online: Bool? = nil, key: IdempotencyKey = "k") -> ClientRequest {
            .inviteSend(InviteSend(to: to, ttl: 5, onlineOnly: online, idempotencyKey: key))
        }
        #expect(scenario.refusal(of: send([]), from: alice) == .invalidParams)
        #expect(scenario.refusal(of: send(Array(repeating: "bob", count: 33)), from: alice) == .tooLarge)
        #expect(scenario.refusal(of: send(["bob", "nobody"]), from: alice) == .unknownUser)
        #expect(scenario.refusal(of: send(["bob", "carol"], online: true), from: alice) == .noDeviceOnline)
        #expect(scenario.events(of: bob).isEmpty)
        #expect(scenario.refusal(of: send(["carol"], key: "1"), from: alice) == nil)
        #expect(scenario.refusal(of: send(["carol"], key: "1"), from: bob) == nil)
        #expect(scenario.refusal(of: send(["alice", "carol"], key: "2"), from: bob) == .tooManyRequests)
        #expect(scenario.refusal(of: send(["alice"], key: "2"), from: bob) == nil)
        scenario.advance(by: .seconds(5))
        #expect(scenario.refusal(of: send(["alice", "carol"], key: "3"), from: bob) == nil)
    }
}
