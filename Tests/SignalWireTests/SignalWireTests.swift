import JSON
import SignalSupport
import SignalWire
import Testing
import TestSupport

private func roundTrip<Value: Codable & Equatable>(_ value: Value) throws {
    let bytes = try SignalCoding.encode(value)
    let back = try SignalCoding.decode(Value.self, from: bytes)
    #expect(back == value, "\(String(decoding: bytes, as: UTF8.self))")
}

private func roundTrip<Method: RPCMethod>(method params: Method, _ result: Method.Result) throws {
    let message = try RPCMessage(decoding: SignalCoding.request(id: .number(7), params))
    #expect(message.kind == .request(id: .number(7), method: Method.method))
    #expect(try message.params(Method.self) == params)
    #expect(ClientRequest.methods.contains(Method.method))
    _ = try ClientRequest(method: Method.method, in: message)

    let response = try RPCMessage(decoding: SignalCoding.response(id: .string("a"), result))
    #expect(response.kind == .result(id: .string("a")))
    #expect(try response.result(Method.Result.self) == result)
}

private let device = DeviceDescription(
    id: "d1", name: "Kitchen", capabilities: ["audio"], pushToken: Redacted("push-token"))
private let offer: JSONValue = ["offer": ["type": "offer", "sdp": "v=0\r\n"], "mine": [1, 2.5, nil, true, -3]]

/// One event of each kind.
private let events: [ExchangeEvent] = [
    .inviteReceived(
        InviteReceived(
            invite: "i", inviter: "u", group: "g", invitees: ["v"], data: offer, ttlRemaining: 29.5, payload: ["a": 1])),
    .inviteAccepted(InviteAnswered(invite: "i", invitee: "v", device: "d", data: ["answer": "x"])),
    .inviteRejected(InviteAnswered(invite: "i", invitee: "v", device: "d", data: ["reason": "busy"])),
    .inviteHandled(InviteHandled(invite: "i", device: "d", action: .rejected)),
    .inviteCancelled(InviteCancelled(invite: "i")),
    .inviteModified(InviteModified(invite: "i", data: offer)),
    .inviteTimedOut(InviteTimedOut(invite: "i", invitees: ["v"])),
    .inviteMissed(InviteMissed(invite: "i", payload: "missed")),
    .inviteEnded(InviteEnded(invite: "i")),
    .groupChanged(GroupChanged(group: "g", change: .created, user: "u", members: ["u", "v"], name: "G")),
    .callSignal(CallSignalled(invite: "i", type: "candidate", data: [], from: "u")),
    .callEnded(CallEnded(invite: "i", reason: "completed", durationMilliseconds: 1_200, from: "u")),
    .connectionCreated(ConnectionCreated(room: "r", connection: "c", user: "u", role: .moderator, data: "d")),
    .connectionDestroyed(ConnectionDestroyed(room: "r", connection: "c", reason: "left")),
    .roomSignal(RoomSignalled(room: "r", type: "chat", data: [1], from: "c", user: "u")),
    .streamDropped(StreamChange(room: "r", connection: "c", user: "u")),
    .streamResumed(StreamChange(invite: "i", connection: "c", user: "u")),
    .moveRequested(MoveRequested(withinSeconds: 2.5, webSocketURL: "wss://b/v1/rtc")),
    .tokenExpiring(TokenExpiring(expiresIn: 30)),
    .presenceChanged(Presence(user: "u", publicIDs: ["u@h", "+1"], reachable: false)),
    .notification(NotificationReceived(payload: ["deep": [["x": 18_446_744_073_709_551]]])),
    .unknown(type: "fromTheFuture", data: ["kept": true]),
]

@Suite struct SignalWireTests {
    @Test("Every method and result comes back from the wire as it was sent")
    func methods() throws {
        let result = SessionStart.Result(
            session: "s", connection: "c", user: "u", publicIDs: ["u@localhost"], resumed: false, sequence: .max,
            keepaliveSeconds: 25, isAnonymous: false)
        try roundTrip(
            method: SessionStart(
                token: Redacted("t"), device: device, resume: .init(session: "s", after: 4), user: "u",
                application: "a"), result)
        try roundTrip(method: SessionRenew(token: Redacted("t")), SessionRenew.Result(expiresIn: 60.5))
        try roundTrip(method: SessionEnd(), Empty())
        try roundTrip(method: DeviceRegister(device: device), Empty())
        try roundTrip(
            method: DeviceRegister(device: device, start: .warm, push: [.init(kind: "apns", token: Redacted("t"))]),
            Empty())
        try roundTrip(method: DeviceUnregister(), Empty())
        try roundTrip(
            method: InviteSend(
                to: "v", data: offer, ttl: 30, payload: ["apns": [:]], timeoutPayload: "missed", onlineOnly: true,
                idempotencyKey: "k"),
            InviteSend.Result(invite: "i", invitees: ["v"]))
        try roundTrip(
            method: InviteSend(to: ["v", "w"], group: "g", ttl: 0, idempotencyKey: "k"),
            InviteSend.Result(invite: "i", invitees: ["v", "w"]))
        try roundTrip(method: InviteAccept(invite: "i", data: offer), Empty())
        try roundTrip(method: InviteReject(invite: "i"), Empty())
        try roundTrip(method: InviteCancel(invite: "i", data: ["x": 1]), Empty())
        try roundTrip(method: InviteModify(invite: "i", data: offer), Empty())
        let entry = InviteList.Entry(
            invite: "i", inviter: "u", group: "g", invitees: ["v", "w"], pending: ["w"], data: offer, ttlRemaining: 2.5)
        try roundTrip(method: InviteList(after: 3), InviteList.Result(invites: [entry], next: 4))
        try roundTrip(method: CallSignal(invite: "i", type: "candidate", data: "…"), Empty())
        try roundTrip(method: CallProbe(invite: "i", peer: "v"), CallProbe.Result(present: false))
        try roundTrip(method: CallEnd(invite: "i", reason: "completed", durationMilliseconds: 9_000_000_000), Empty())
        try roundTrip(method: CallSignal(invite: "i", type: "candidate", peer: "v"), Empty())
        try roundTrip(
            method: RoomJoin(room: "r", token: Redacted("t"), data: "d"),
            RoomJoin.Result(participants: [.init(connection: "c", user: "u", role: .publisher, data: "d")]))
        try roundTrip(method: RoomLeave(room: "r"), Empty())
        try roundTrip(method: RoomSignal(room: "r", to: "c", type: "chat", data: ["x": 1]), Empty())
        try roundTrip(method: GroupCreate(group: "g", name: "G", members: ["v"]), .init(group: "g"))
        try roundTrip(method: GroupJoin(group: "g"), Empty())
        try roundTrip(method: GroupLeave(group: "g"), Empty())
        try roundTrip(method: GroupDismiss(group: "g"), Empty())
        try roundTrip(
            method: GroupMembers(group: "g"), .init(group: "g", name: "G", owner: "u", members: ["u", "v"]))
        try roundTrip(method: GroupList(), .init(groups: [.init(group: "g", name: "G", owner: "u")]))
        try roundTrip(
            method: PresenceSubscribe(), .init(users: [Presence(user: "b", publicIDs: ["b@h"], reachable: true)]))
        try roundTrip(method: PresenceUnsubscribe(), Empty())
        try roundTrip(method: Ping(), Empty())
    }

    @Test("The invitees of an invite are a string for one user and a list for several, and all else is refused")
    func addressees() throws {
        func read(_ to: String) throws -> [UserID] {
            let text = #"{"to":\#(to),"ttl":1,"idempotency_key":"k"}"#
            return try SignalCoding.decode(InviteSend.self, from: Array(text.utf8)).to
        }
        #expect(try read(#""v""#) == ["v"])
        #expect(try read(#"["v"]"#) == ["v"])
        #expect(try read(#"["v","w"]"#) == ["v", "w"])
        for wrong in ["7", #"[7]"#, "{}", "null"] { #expect(throws: SignalCodingError.self) { try read(wrong) } }
    }

    @Test("Every event comes back from the wire as it was sent, one from the future too")
    func eventRoundTrip() throws {
        for (index, event) in events.enumerated() {
            let numbered = NumberedEvent(sequence: UInt64(index), event: event)
            let message = try RPCMessage(decoding: SignalCoding.event(numbered))
            #expect(message.kind == .notification(method: "event"))
            #expect(try message.params(NumberedEvent.self) == numbered)
        }
        #expect(events.count == ExchangeEvent.Kind.allCases.count + 1)
    }

    @Test("Every REST body comes back from the wire as it was sent")
    func bodies() throws {
        try roundTrip(LoginRequest(mediaToken: Redacted("m")))
        try roundTrip(LoginRequest(userID: "u", password: Redacted("p")))
        try roundTrip(LoginRequest(userID: "u", accessToken: Redacted("a")))
        try roundTrip(TokenRequest(refreshToken: Redacted("r")))
        try roundTrip(
            LoginResponse(
                token: Redacted("t"), refreshToken: Redacted("r"), expiresIn: 3_600, id: "u", idMappingCount: 2,
                routingID: "route", userData: .init(customerGUID: "g", email: "a@example.org")))
        try roundTrip(AnonymousLoginRequest(userID: "guest"))
        try roundTrip(AnonymousLoginResponse(token: Redacted("t")))
        try roundTrip(Identities(publicIDs: ["a", "b"], routingID: "r"))
        try roundTrip(
            ConnectionResources(
                webSocketURL: "ws://localhost/v1/rtc",
                iceServers: [ICEServer(urls: ["turn:x"], username: "u", credential: Redacted("c"))],
                keepaliveSeconds: 25, resumeWindowSeconds: 60))
        for code in RESTErrorCode.allCases { try roundTrip(RESTFailure(code, "A sentence.")) }
    }

    @Test("AUTH-1: expires_in is understood as a number and as a number in a string")
    func lenientNumbers() throws {
        for text in [#"{"token":"t","expires_in":3600}"#, #"{"token":"t","expires_in":"3600"}"#] {
            #expect(try SignalCoding.decode(LoginResponse.self, from: Array(text.utf8)).expiresIn == 3_600)
        }
        #expect(throws: SignalCodingError.self) {
            try SignalCoding.decode(LoginResponse.self, from: Array(#"{"token":"t","expires_in":"soon"}"#.utf8))
        }
    }

    @Test("AUTH-12: A secret in a message does not show when the message is printed, dumped or refused")
    func redaction() throws {
        let start = SessionStart(token: Redacted("s3cret"), device: device)
        var dumped = "\(start) \(String(reflecting: start))"
        dump(start, to: &dumped)
        #expect(!dumped.contains("s3cret") && !dumped.contains("push-token"))
        do {
            _ = try SignalCoding.decode(LoginRequest.self, from: Array(#"{"type":3,"password":"s3cret"}"#.utf8))
            Issue.record("a wrong type was accepted")
        } catch {
            #expect(!"\(error)".contains("s3cret"))
        }
    }

    @Test(
        "A message that is no message is refused with the code that JSON-RPC has for it, and with its id if it has one")
    func malformed() {
        let cases: [(String, RPCErrorCode, RPCID?)] = [
            ("", .parseError, nil),
            ("nonsense", .parseError, nil),
            ("{\"jsonrpc\":\"2.0\",", .parseError, nil),
            ("[]", .invalidRequest, nil),
            ("3", .invalidRequest, nil),
            ("{}", .invalidRequest, nil),
            (#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, .invalidRequest, .number(3)),
            (#"{"id":"x","method":"ping"}"#, .invalidRequest, .string("x")),
            (#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, .invalidRequest, nil),
            (#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, .invalidRequest, nil),
            (#"{"jsonrpc":"2.0","id":1}"#, .invalidRequest, .number(1)),
            (#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, .invalidRequest, .number(1)),
            (#"{"jsonrpc":"2.0","id":1,"method":3}"#, .invalidRequest, .number(1)),
            (#"{"jsonrpc":"2.0","id":1,"error":3}"#, .invalidRequest, nil),
        ]
        for (text, code, id) in cases {
            do {
                _ = try RPCMessage(decoding: Array(text.utf8))
                Issue.record("accepted: \(text)")
            } catch {
                #expect(error.error.known == code, "\(text): \(error.error)")
                #expect(error.id == id, "\(text)")
            }
        }
    }

    @Test("An unknown method and wrong parameters have errors of their own that name the place")
    func wrongParams() throws {
        let unknown = try RPCMessage(decoding: Array(#"{"jsonrpc":"2.0","id":1,"method":"dance"}"#.utf8))
        #expect(throws: RPCError.self) { try ClientRequest(method: "dance", in: unknown) }

        let text = #"{"jsonrpc":"2.0","id":1,"method":"invite.send","params":{"to":3,"ttl":1,"idempotency_key":"k"}}"#
        let message = try RPCMessage(decoding: Array(text.utf8))
        do {
            _ = try ClientRequest(method: "invite.send", in: message)
            Issue.record("accepted a number as an id")
        } catch {
            #expect(error.known == .invalidParams)
            #expect(error.message.contains("params.to must be a string"), "\(error)")
        }
    }

    @Test("Nesting is refused beyond 64 levels before any parser recurses, and brackets in strings do not count")
    func nesting() throws {
        func nested(_ depth: Int) -> [UInt8] {
            Array(String(repeating: "[", count: depth).utf8) + Array(String(repeating: "]", count: depth).utf8)
        }
        _ = try SignalCoding.decode(JSONValue.self, from: nested(64))
        for depth in [65, 30_000] {
            do {
                _ = try SignalCoding.decode(JSONValue.self, from: nested(depth))
                Issue.record("accepted \(depth) levels")
            } catch { #expect(error.code == .tooDeep) }
        }
        let text = #"{"a":"\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\"}"#
        _ = try SignalCoding.decode(JSONValue.self, from: Array(text.utf8))
    }

    @Test("What a request may hold fits into the event that carries it; one nested too deeply is refused by its id")
    func depthOfEvents() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        let text = #"{"jsonrpc":"2.0","id":5,"method":"notify","params":{"data":\#(nested(62))}}"#
        let request = try RPCMessage(decoding: Array(text.utf8))
        let data = try #require(try request.params([String: JSONValue].self)["data"])
        var invite = InviteReceived(
            invite: "i1", inviter: "alice", invitees: ["bob"], data: data, ttlRemaining: 30)
        invite.data = data
        let event = try SignalCoding.event(NumberedEvent(sequence: 1, event: .inviteReceived(invite)))
        let heard = try RPCMessage(decoding: event, within: .delivery).params(NumberedEvent.self)
        #expect(heard.event == .inviteReceived(invite))

        let deeper = #"{"jsonrpc":"2.0","id":6,"method":"notify","params":{"data":\#(nested(63))}}"#
        do throws(RPCMessage.Malformed) {
            _ = try RPCMessage(decoding: Array(deeper.utf8))
            Issue.record("accepted")
        } catch {
            #expect(error.id == .number(6) && error.error.known == .parseError)
        }
    }

    @Test("A message over 64 KiB is refused with the limit")
    func tooLarge() {
        do {
            _ = try RPCMessage(decoding: [UInt8](repeating: UInt8(ascii: " "), count: 65_537))
            Issue.record("accepted")
        } catch {
            #expect(error.error.known == .tooLarge)
            #expect(error.error.data?.limit == 65_536)
        }
    }

    @Test("A message cut off at any length, or with any byte replaced, is read or refused and never traps")
    func truncationAndDamage() throws {
        let whole = try SignalCoding.event(NumberedEvent(sequence: 3, event: events[0]))
        for length in 0..<whole.count {
            #expect(throws: RPCMessage.Malformed.self) { try RPCMessage(decoding: Array(whole[..<length])) }
        }
        var generator = SeededGenerator(seed: 1)
        for index in whole.indices {
            var damaged = whole
            damaged[index] = UInt8.random(in: 0...255, using: &generator)
            if let message = try? RPCMessage(decoding: damaged) { _ = try? message.params(NumberedEvent.self) }
        }
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...80, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            _ = try? RPCMessage(decoding: bytes)
        }
    }

    @Test("An error's number and name are each used once, and a number of a newer exchange is kept")
    func errorCodes() throws {
        #expect(Set(RPCErrorCode.allCases.map(\.name)).count == RPCErrorCode.allCases.count)
        let bytes = SignalCoding.failure(id: nil, RPCError(.tooLarge, "Too large.", limit: 8_192))
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("\"id\":null") && text.contains("\"limit\":8192"))
        let future = #"{"jsonrpc":"2.0","id":1,"error":{"code":4999,"message":"New."}}"#
        guard case .failure(let id, let error) = try RPCMessage(decoding: Array(future.utf8)).kind else {
            Issue.record("not a failure")
            return
        }
        #expect(id == .number(1) && error.code == 4_999 && error.known == nil)
    }
}
