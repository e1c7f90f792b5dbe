@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import Testing
import Core

private func join(_ room: RoomName, data: String? = nil) -> ClientRequest {
    .roomJoin(RoomJoin(room: room, data: data))
}

private func signal(_ data: JSONValue? = nil, to: ConnectionName? = nil, type: String = "t") -> ClientRequest {
    .roomSignal(RoomSignal(room: "lobby", to: to, type: type, data: data))
}

private func participants(_ result: Result<ClientResponse, RPCError>) -> [RoomJoin.Participant]? {
    if case .success(.room(let room)) = result { room.participants } else { nil }
}

@Suite struct RoomTests {
    @Test("CONN-7: A user who joins a room gets its participants; those get each join and leave, and the reason")
    func joinAndLeave() {
        var scenario = ExchangeScenario()
        let guest = scenario.device("g", of: "guest", registers: false)
        let bob = scenario.device("b", of: "bob")
        let alice = scenario.device("a", of: "alice")
        func users(_ device: ConnectionID) -> [UserID]? {
            participants(scenario.request(join("lobby"), from: device))?.map(\.user)
        }
        #expect(users(guest) == [])
        #expect(users(bob) == ["guest"])
        #expect(users(alice) == ["guest", "bob"])
        #expect(users(alice) == ["guest", "bob"], "joining twice changes nothing")
        #expect(scenario.events(of: guest).count == 2)

        #expect(scenario.refusal(of: .roomLeave(RoomLeave(room: "lobby")), from: guest) == nil)
        #expect(scenario.refusal(of: .roomLeave(RoomLeave(room: "lobby")), from: guest) == .unknownRoom)
        _ = scenario.request(.sessionEnd(SessionEnd()), from: alice)
        _ = scenario.request(join("lobby"), from: guest)
        scenario.feed(.disconnected(guest))
        scenario.advance(by: .seconds(60))
        let reasons = scenario.events(of: bob).compactMap {
            if case .connectionDestroyed(let destroyed) = $0 { destroyed.reason } else { nil }
        }
        #expect(reasons == ["left", "disconnected", "connectionLost"])
    }

    @Test(
        "CONN-7: Each participant is known by its connection, with the data that it gave, to those there and those to come"
    )
    func connectionData() {
        var scenario = ExchangeScenario()
        let bob = scenario.device("b", of: "bob")
        let alice = scenario.device("a", of: "alice")
        _ = scenario.request(join("lobby", data: "name=Bob"), from: bob)
        let name = scenario.session(on: bob)?.name ?? "none"
        #expect(
            participants(scenario.request(join("lobby", data: "name=Alice"), from: alice))
                == [.init(connection: name, user: "bob", data: "name=Bob")])
        let created = ConnectionCreated(
            room: "lobby", connection: scenario.session(on: alice)?.name ?? "none", user: "alice", data: "name=Alice")
        #expect(scenario.events(of: bob) == [.connectionCreated(created)])
    }

    @Test("AUTH-5: A token for a session opens that session with its role and data, and nothing else")
    func sessionToken() {
        var scenario = ExchangeScenario()
        let terms = Grant.RoomGrant(room: "lobby", role: .moderator, data: "signed")
        let digest = SecretDigest(of: "token of carol for the lobby")
        scenario.feed(.tokenIssued(digest, Grant(user: "carol", isAnonymous: false, room: terms)))
        let alice = scenario.device("a", of: "alice")
        _ = scenario.request(join("lobby"), from: alice)

        let phone = scenario.device("c", of: "carol")
        let limited = scenario.device("c", of: "carol for the lobby", registers: false)
        #expect(scenario.closed[phone] == nil, "the token's bearer does not push the user's own device out")
        #expect(scenario.refusal(of: join("other"), from: limited) == .tokenForAnotherSession)
        #expect(scenario.closed[limited] == nil)
        #expect(scenario.refusal(of: join("lobby", data: "mine"), from: limited) == nil)
        guard case .connectionCreated(let created)? = scenario.events(of: alice).last else {
            return #expect(Bool(false), "nobody came")
        }
        #expect(created.user == "carol" && created.role == .moderator && created.data == "signed")
        let register = DeviceRegister(device: DeviceDescription(id: "c", name: "c"))
        for request in [
            ClientRequest.deviceRegister(register), .inviteList(InviteList()), .groupList(GroupList()),
            .inviteSend(InviteSend(to: "alice", ttl: 1, idempotencyKey: "k")),
        ] { #expect(scenario.refusal(of: request, from: limited) == .notAllowed) }
        #expect(scenario.refusal(of: signal(), from: limited) == nil)
        #expect(scenario.events(of: phone).isEmpty)

        let token = Redacted("token of carol for the lobby")
        let bob = scenario.device("b", of: "bob")
        let stolen = ClientRequest.roomJoin(RoomJoin(room: "lobby", token: token))
        #expect(scenario.refusal(of: stolen, from: bob) == .tokenRejected)
        let elsewhere = ClientRequest.roomJoin(RoomJoin(room: "hall", token: token))
        #expect(scenario.refusal(of: elsewhere, from: phone) == .tokenForAnotherSession)
        #expect(scenario.refusal(of: stolen, from: phone) == nil)
        let wrong = ClientRequest.roomJoin(RoomJoin(room: "lobby", token: Redacted("wrong")))
        #expect(scenario.refusal(of: wrong, from: bob) == .tokenRejected)
        #expect(scenario.closed[bob] == nil, "the session is good, whatever the room's token is")
    }

    @Test("SIG-1: A signal goes to one connection, or to the whole session in one order for all")
    func signals() {
        var scenario = ExchangeScenario()
        let guest = scenario.device("g", of: "guest", registers: false)
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        for device in [guest] + bobs { _ = scenario.request(join("lobby"), from: device) }
        for device in [guest] + bobs { _ = scenario.events(of: device) }
        func name(_ device: ConnectionID) -> ConnectionName { scenario.session(on: device)?.name ?? "none" }

        #expect(scenario.refusal(of: signal(["x": 1]), from: guest) == nil)
        #expect(scenario.refusal(of: signal("second"), from: bobs[0]) == nil)
        let expected: [ExchangeEvent] = [
            .roomSignal(RoomSignalled(room: "lobby", type: "t", data: ["x": 1], from: name(guest), user: "guest")),
            .roomSignal(RoomSignalled(room: "lobby", type: "t", data: "second", from: name(bobs[0]), user: "bob")),
        ]
        for device in [guest] + bobs { #expect(scenario.events(of: device) == expected) }

        #expect(scenario.refusal(of: signal(to: name(bobs[1])), from: guest) == nil)
        #expect([guest, bobs[0], bobs[1]].map { scenario.events(of: $0).count } == [0, 0, 1])
        let alice = scenario.device("a", of: "alice")
        #expect(scenario.refusal(of: signal(), from: alice) == .unknownRoom, "who is not there says nothing there")
        #expect(scenario.refusal(of: signal(to: name(alice)), from: guest) == .unknownRoom)
    }

    @Test("SIG-1: A signal larger than the limits is refused with the limit, and not delivered")
    func largeSignals() {
        var scenario = ExchangeScenario()
        let bob = scenario.device("b", of: "bob")
        _ = scenario.request(join("lobby"), from: bob)
        func limit(_ request: ClientRequest) -> Int? {
            guard case .failure(let error) = scenario.request(request, from: bob) else { return nil }
            return error.data?.limit
        }
        #expect(
            limit(signal(.string(String(repeating: "x", count: 8_190)), type: String(repeating: "t", count: 128)))
                == nil)
        _ = scenario.events(of: bob)
        #expect(limit(signal(.string(String(repeating: "x", count: 8_191)))) == 8_192)
        #expect(limit(signal(type: String(repeating: "t", count: 129))) == 128)
        #expect(scenario.events(of: bob).isEmpty)
    }

    @Test("Connection data are bounded, and so are the rooms of one connection")
    func bounds() {
        var scenario = ExchangeScenario()
        let bob = scenario.device("b", of: "bob")
        #expect(scenario.refusal(of: join("r", data: String(repeating: "d", count: 1_001)), from: bob) == .tooLarge)
        for number in 0..<32 { #expect(scenario.refusal(of: join("room \(number)"), from: bob) == nil) }
        #expect(scenario.refusal(of: join("one too many"), from: bob) == .tooManyRequests)
    }
}
