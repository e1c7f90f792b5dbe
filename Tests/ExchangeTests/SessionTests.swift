@testable import ExchangeCore
import JSON
import SignalWire
import Testing
import Core

private func start(_ token: String, device: DeviceID = "d", resume: SessionStart.Resume? = nil) -> ClientRequest {
    .sessionStart(
        SessionStart(token: Redacted(token), device: DeviceDescription(id: device, name: ""), resume: resume))
}

@Suite struct SessionTests {
    @Test("AUTH-6: Before login everything but session.start and ping is refused with notAuthenticated")
    func notAuthenticated() {
        var scenario = ExchangeScenario()
        let stranger = scenario.connect()
        let device = DeviceDescription(id: "d", name: "")
        let requests: [ClientRequest] = [
            .sessionRenew(SessionRenew(token: Redacted("token of bob"))), .sessionEnd(SessionEnd()),
            .deviceRegister(DeviceRegister(device: device)),
            .deviceUnregister(DeviceUnregister()), .inviteSend(InviteSend(to: "bob", ttl: 1, idempotencyKey: "k")),
            .inviteAccept(InviteAccept(invite: "i")), .inviteReject(InviteReject(invite: "i")),
            .inviteCancel(InviteCancel(invite: "i")), .inviteModify(InviteModify(invite: "i")),
            .inviteList(InviteList()), .groupCreate(GroupCreate()), .groupJoin(GroupJoin(group: "g")),
            .groupLeave(GroupLeave(group: "g")), .groupDismiss(GroupDismiss(group: "g")),
            .groupMembers(GroupMembers(group: "g")), .groupList(GroupList()),
            .roomSignal(RoomSignal(room: "r", type: "t")), .callSignal(CallSignal(invite: "i", type: "t")),
            .callProbe(CallProbe(invite: "i")),
            .callEnd(CallEnd(invite: "i", reason: "completed", durationMilliseconds: 1)),
            .roomJoin(RoomJoin(room: "r")), .roomLeave(RoomLeave(room: "r")),
            .presenceSubscribe(PresenceSubscribe()), .presenceUnsubscribe(PresenceUnsubscribe()),
        ]
        #expect(requests.count + 2 == ClientRequest.methods.count)
        for request in requests { #expect(scenario.refusal(of: request, from: stranger) == .notAuthenticated) }
        #expect(scenario.refusal(of: .ping(Ping()), from: stranger) == nil)
        #expect(scenario.refusal(of: start("token of bob"), from: stranger) == nil)
        _ = scenario.request(.sessionEnd(SessionEnd()), from: stranger)
        #expect(scenario.refusal(of: .roomJoin(RoomJoin(room: "r")), from: stranger) == .notAuthenticated)
    }

    @Test("AUTH-3: An anonymous device may join a room by name, and nothing else")
    func anonymous() {
        var scenario = ExchangeScenario()
        let guest = scenario.device("g", of: "guest", registers: false)
        let device = DeviceDescription(id: "g", name: "")
        let invite = ClientRequest.inviteSend(InviteSend(to: "bob", ttl: 1, idempotencyKey: "k"))
        #expect(scenario.refusal(of: invite, from: guest) == .notAllowed)
        #expect(scenario.refusal(of: .deviceRegister(DeviceRegister(device: device)), from: guest) == .notAllowed)
        #expect(scenario.refusal(of: .inviteAccept(InviteAccept(invite: "i")), from: guest) == .notAllowed)
        #expect(scenario.refusal(of: .callSignal(CallSignal(invite: "i", type: "t")), from: guest) == .notAllowed)
        #expect(scenario.refusal(of: .groupCreate(GroupCreate()), from: guest) == .notAllowed)
        #expect(scenario.refusal(of: .inviteList(InviteList()), from: guest) == .notAllowed)
        #expect(scenario.refusal(of: .roomJoin(RoomJoin(room: "lobby")), from: guest) == nil)
        #expect(scenario.refusal(of: .roomSignal(RoomSignal(room: "lobby", type: "t")), from: guest) == nil)
        #expect(scenario.refusal(of: .roomLeave(RoomLeave(room: "lobby")), from: guest) == nil)
        let alice = scenario.device("a", of: "alice")
        let back = ClientRequest.inviteSend(InviteSend(to: "guest", ttl: 1, idempotencyKey: "k"))
        #expect(scenario.refusal(of: back, from: alice) == .unknownUser)
    }

    @Test("A token is good until it expires; then and with any other the connection is closed with 4001")
    func tokens() {
        var scenario = ExchangeScenario()
        let early = scenario.connect()
        #expect(scenario.refusal(of: start("token of bob"), from: early) == nil)
        let wrong = scenario.connect()
        #expect(scenario.refusal(of: start("token of nobody"), from: wrong) == .tokenRejected)
        #expect(scenario.closed[wrong] == .tokenRejected)
        scenario.advance(by: .seconds(3_600))
        let late = scenario.connect()
        #expect(scenario.refusal(of: start("token of bob"), from: late) == .tokenExpired)
        #expect(scenario.closed[late]?.code == 4001)
        #expect(scenario.closed[early] == .tokenExpired)
        scenario.advance(by: .seconds(601))
        let later = scenario.connect()
        #expect(scenario.refusal(of: start("token of bob"), from: later) == .tokenRejected)
    }

    @Test("AUTH-4, AUTH-8: A client that says whose token it has is refused if it has another user's or application's")
    func expectations() {
        var scenario = ExchangeScenario()
        let device = DeviceDescription(id: "d", name: "")
        for (user, application, isGood) in [
            ("bob", "app", true), ("alice", nil, false), (nil, "other", false), (nil, "app", true), ("bob", nil, true),
        ] as [(UserID?, ApplicationKey?, Bool)] {
            let start = SessionStart(
                token: Redacted("token of bob"), device: device, user: user, application: application)
            let refusal = scenario.refusal(of: .sessionStart(start), from: scenario.connect())
            #expect(refusal == (isGood ? nil : .tokenRejected))
        }
    }

    @Test("A session names its user; a second one on the same connection is refused")
    func sessionResult() {
        var scenario = ExchangeScenario()
        let bob = scenario.connect()
        guard case .success(.session(let result)) = scenario.request(start("token of bob"), from: bob) else {
            Issue.record("no session")
            return
        }
        #expect(result.user == "bob" && result.publicIDs == ["bob@localhost", "+15550100"])
        #expect(!result.resumed && !result.isAnonymous && result.keepaliveSeconds == 25)
        #expect(scenario.refusal(of: start("token of bob"), from: bob) == .notAllowed)
    }

    @Test("A socket that starts no session in time is closed, one that does is not")
    func loginWindow() {
        var scenario = ExchangeScenario()
        let idle = scenario.connect()
        let busy = scenario.device("b", of: "bob")
        scenario.advance(by: .seconds(10))
        #expect(scenario.closed[idle]?.code == 1008)
        #expect(scenario.closed[busy] == nil)
        _ = scenario.request(.sessionEnd(SessionEnd()), from: busy)
        scenario.advance(by: .seconds(10))
        #expect(scenario.closed[busy]?.code == 1008)
    }

    @Test("Malformed messages are answered, counted, and past a hundred in a minute close the connection")
    func garbage() {
        var scenario = ExchangeScenario()
        let bob = scenario.device("b", of: "bob")
        let malformed = RPCMessage.Malformed(id: nil, error: RPCError(.parseError, "Not JSON."))
        for _ in 0..<100 { scenario.feed(.malformed(bob, malformed)) }
        #expect(scenario.inboxes[bob]?.count == 100)
        #expect(scenario.core.counters.malformed == 100)
        #expect(scenario.closed[bob] == nil)
        scenario.advance(by: .seconds(61))
        for _ in 0..<100 { scenario.feed(.malformed(bob, malformed)) }
        #expect(scenario.closed[bob] == nil)
        scenario.feed(.malformed(bob, malformed))
        #expect(scenario.closed[bob]?.code == 1008)
    }

    @Test("A device that connects again takes the place of its earlier connection")
    func replacement() {
        var scenario = ExchangeScenario()
        let first = scenario.device("b", of: "bob")
        let second = scenario.device("b", of: "bob")
        #expect(scenario.closed[first]?.code == 1008)
        let alice = scenario.device("a", of: "alice")
        _ = scenario.invite("bob", from: alice)
        #expect(scenario.events(of: first).isEmpty)
        #expect(scenario.events(of: second).count == 1)
        scenario.feed(.disconnected(first))
        _ = scenario.invite("bob", from: alice, key: "2")
        #expect(scenario.events(of: second).count == 1)
    }

    @Test("CONN-11: A notification's payload reaches each of the user's devices unchanged")
    func notification() {
        var scenario = ExchangeScenario()
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob", registers: false)]
        let payload: JSONValue = ["a": [1, 2.5, nil, ["b": "ü"]], "n": 9_007_199_254_740_993]
        scenario.feed(.notify("bob", payload))
        for bob in bobs {
            #expect(scenario.events(of: bob) == [.notification(NotificationReceived(payload: payload))])
        }
    }

    @Test("Events of one user are numbered upwards without gaps, whichever device they are for")
    func numbers() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        let invite = scenario.invite("bob", from: alice)
        _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bobs[0])
        func numbers(_ connection: ConnectionID) -> [UInt64] {
            (scenario.inboxes[connection] ?? []).compactMap {
                if case .event(let numbered) = $0 { numbered.sequence } else { nil }
            }
        }
        #expect(numbers(bobs[0]) == [1])
        #expect(numbers(bobs[1]) == [1, 2])
        #expect(numbers(alice) == [1, 2])
    }

    @Test(
        "CONN-5: A device that comes back within the window gets what it missed, in order, once; later it starts afresh"
    )
    func resume() {
        for (pause, resumes) in [(Duration.seconds(59), true), (.seconds(61), false)] {
            var scenario = ExchangeScenario()
            let alice = scenario.device("a", of: "alice")
            let bob = scenario.connect()
            guard case .success(.session(let session)) = scenario.request(start("token of bob"), from: bob) else {
                Issue.record("no session")
                return
            }
            let device = DeviceDescription(id: "d", name: "")
            _ = scenario.request(.deviceRegister(DeviceRegister(device: device)), from: bob)
            let invite = scenario.invite("bob", from: alice, ttl: 300, key: "heard")
            scenario.feed(.disconnected(bob))
            _ = scenario.invite("bob", from: alice, ttl: 300, key: "missed")
            _ = scenario.request(.inviteCancel(InviteCancel(invite: invite)), from: alice)
            scenario.advance(by: pause)

            let back = scenario.connect()
            let request = start("token of bob", resume: .init(session: session.session, after: 1))
            guard case .success(.session(let result)) = scenario.request(request, from: back) else {
                Issue.record("no session")
                return
            }
            #expect(result.resumed == resumes)
            #expect((result.session == session.session) == resumes)
            guard case .response(_, .session)? = scenario.inboxes[back]?.first else {
                Issue.record("events came before the response")
                return
            }
            let events = scenario.events(of: back)
            #expect(events.count == (resumes ? 2 : 0))
            if resumes { #expect(events.last == .inviteCancelled(InviteCancelled(invite: invite))) }
            _ = scenario.invite("bob", from: alice, key: "after")
            #expect(scenario.events(of: back).count == (resumes ? 1 : 0), "a resumed device is still registered")
        }
    }
}
