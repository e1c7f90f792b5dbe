import CallControl
import Foundation
import JSON
import NIOCore
import NIOHTTP1
import SignalWire
import TestSupport
import Testing

@testable import SignalingClient

@Suite("HandsetService, against a scripted exchange over real sockets", .timeLimit(.minutes(5)))
struct ServiceTests {
    /// A service connected to a scripted exchange; both are gone afterwards.
    private func withService(
        _ exchange: ScriptedExchange = ScriptedExchange(),
        _ change: (inout HandsetServiceConfiguration) -> Void = { _ in },
        _ work: (HandsetService, ScriptedExchange) async throws -> Void
    ) async throws {
        try await exchange.start(on: Fixtures.group)
        let service = try Fixtures.service(port: exchange.port, change)
        do {
            try await service.connect()
            try await work(service, exchange)
        } catch {
            Issue.record(error)
        }
        await service.disconnect()
        await exchange.stop()
    }

    private func next(
        _ events: inout AsyncStream<SignalingEvent>.Iterator, _ isWanted: (SignalingEvent) -> Bool
    ) async throws -> SignalingEvent {
        while let event = await events.next() {
            if isWanted(event) { return event }
        }
        throw CancellationError()
    }

    @Test("CONN-1, DEV-1: Connecting logs in, fetches resources, starts a session and registers the device, in order")
    func connecting() async throws {
        try await withService { service, exchange in
            #expect(
                exchange.requests.map(\.path) == ["/v1.1/login", "/v1/allidentities", "/v1/connection"])
            #expect(exchange.methods == ["session.start", "device.register"])
            #expect(exchange.calls[0].params["token"] == "T")
            #expect(exchange.calls[1].params["device"]?["id"] == "d1")
            #expect(exchange.calls[1].params["device"]?["capabilities"] == ["audio"])
            #expect(await service.connectionState == .connected)
            #expect(await service.session?.publicIDs == ["alice@x"])
            #expect(await service.iceServers == [ICEServer(urls: ["stun:s"])])
            try await service.connect()
            #expect(exchange.methods.count == 2, "a second connect gives the same connection")
        }
    }

    @Test("CONN-10: What the exchange sends before there is a listener reaches the first listener, in order")
    func earlyEvents() async throws {
        try await withService { service, exchange in
            exchange.tell("notification", #"{"payload":{"n":1,"text":"ü"}}"#)
            exchange.tell("notification", #"{"payload":[2]}"#)
            try await service.leave(room: "its answer comes after both")
            var events = service.events.makeAsyncIterator()
            #expect(await events.next() == .connected)
            #expect(await events.next() == .notification(["n": 1, "text": "ü"]))
            #expect(await events.next() == .notification([2]))
        }
    }

    @Test("CONN-11: A notification's payload reaches the application unchanged")
    func notification() async throws {
        try await withService { service, exchange in
            let payload = #"{"big":9007199254740993,"fraction":0.1,"nothing":null,"list":[true,"x"]}"#
            exchange.tell("notification", #"{"payload":\#(payload)}"#)
            var events = service.events.makeAsyncIterator()
            let event = try await next(&events) { if case .notification = $0 { true } else { false } }
            let expected = try JSONDecoder().decode(JSONValue.self, from: Data(payload.utf8))
            #expect(event == .notification(expected))
        }
    }

    @Test("INV-2: An invite from the wire arrives with everything it carries")
    func inviteReceived() async throws {
        try await withService { service, exchange in
            exchange.tell(
                "inviteReceived",
                #"{"invite":"i7","inviter":"bob","invitees":["alice"],"data":{"offer":{"type":"offer","sdp":"v=0"}},"#
                    + #""ttl_remaining":12.5}"#)
            exchange.tell(
                "inviteReceived", #"{"invite":"i8","inviter":"bob","invitees":["alice"],"ttl_remaining":0}"#)
            var events = service.events.makeAsyncIterator()
            let wanted = ReceivedInvite(
                id: "i7", inviter: "bob", invitees: ["alice"], offer: .offer("v=0"),
                data: ["offer": ["type": "offer", "sdp": "v=0"]],
                remaining: .milliseconds(12_500))
            let first = try await next(&events) { if case .inviteReceived = $0 { true } else { false } }
            #expect(first == .inviteReceived(wanted))
            let endless = ReceivedInvite(id: "i8", inviter: "bob", invitees: ["alice"], data: .null, remaining: nil)
            #expect(await events.next() == .inviteReceived(endless))
        }
    }

    @Test("What an invite says of the calls that led to it is read, and what is no number counts as nothing")
    func hops() async throws {
        try await withService { service, exchange in
            let cases = [("2", 2), ("-3", 0), ("9007199254740993", 6), ("1e99", 0), ("\"4\"", 0), ("[5]", 0)]
            for (number, (text, _)) in cases.enumerated() {
                exchange.tell(
                    "inviteReceived",
                    #"{"invite":"h\#(number)","inviter":"bob","invitees":["alice"],"data":{"hops":\#(text)},"ttl_remaining":0}"#
                )
            }
            var events = service.events.makeAsyncIterator()
            #expect(await events.next() == .connected)
            for (text, count) in cases {
                guard case .inviteReceived(let invite)? = await events.next() else { return #expect(Bool(false)) }
                #expect(invite.hops.count == count, "\(text)")
            }
        }
    }

    @Test("INV-1: An invite goes out with all its options, and inviteSent is reported before any answer to it")
    func inviteSent() async throws {
        try await withService { service, exchange in
            let options = InviteOptions(
                to: "bob", data: ["offer": "o"], timeToLive: nil, payload: "p", timeoutPayload: "q",
                isOnlineOnly: true, idempotencyKey: "k1")
            let sent = try await service.invite(options)
            exchange.tell("inviteAccepted", #"{"invite":"i1","invitee":"bob","device":"d2","data":{"answer":"a"}}"#)
            #expect(sent == SentInvite(id: "i1", invitees: ["bob"]))
            let params: JSONValue = [
                "to": "bob", "data": ["offer": "o"], "ttl": 0, "payload": "p", "timeout_payload": "q",
                "online_only": true, "idempotency_key": "k1",
            ]
            #expect(exchange.calls.last?.params == params)
            var events = service.events.makeAsyncIterator()
            let isAboutInvite = { (event: SignalingEvent) in
                switch event {
                case .inviteSent, .inviteAccepted: true
                default: false
                }
            }
            let first = try await next(&events, isAboutInvite)
            let second = try await next(&events, isAboutInvite)
            #expect(first == .inviteSent("i1", idempotencyKey: "k1"))
            #expect(
                second
                    == .inviteAccepted(
                        InviteAnswer(
                            invite: "i1", invitee: "bob", device: "d2", answer: CallDescription(.unreadable),
                            data: ["answer": "a"])))
        }
    }

    @Test("INV-5: The error of an accept that came second is alreadyHandled")
    func alreadyHandled() async throws {
        let exchange = ScriptedExchange()
        exchange.answer("invite.accept") { _ in
            #"!{"code":4090,"message":"Another device was first.","data":{"name":"alreadyHandled"}}"#
        }
        try await withService(exchange) { service, _ in
            let error = try await failure { try await service.accept("i1", .application(["answer": "a"])) }
            #expect((error as? SignalingError)?.code == .alreadyHandled)
            #expect("\(error)".hasPrefix("cannot accept the invite: the service says: Another device was first"))
        }
    }

    @Test("AUTH-6: Before login every request fails on the device, without a round trip")
    func beforeLogin() async throws {
        let exchange = ScriptedExchange()
        try await exchange.start(on: Fixtures.group)
        let service = try Fixtures.service(port: exchange.port)
        let attempts: [() async throws -> Void] = [
            { _ = try await service.invite(InviteOptions(to: "bob", idempotencyKey: "k")) },
            { try await service.accept("i", .application(.null)) },
            { try await service.reject("i", InviteRejection(.declined)) },
            { try await service.cancel("i", .application(.null)) },
            { _ = try await service.join(room: "r", data: nil) },
            { try await service.send(CallSignal(invite: "i", type: "t", data: .null)) },
        ]
        for attempt in attempts {
            let error = try await failure(of: attempt)
            #expect((error as? SignalingError)?.code == .notAuthenticated)
        }
        #expect(exchange.requests.isEmpty && exchange.calls.isEmpty)
        await exchange.stop()
    }

    @Test("AUTH-7: An accept asked for while login is under way waits for it and is sent once")
    func acceptDuringLogin() async throws {
        let exchange = ScriptedExchange()
        try await exchange.start(on: Fixtures.group)
        let service = try Fixtures.service(port: exchange.port)
        async let connected: Void = service.connect()
        try await until {
            let state = await service.connectionState
            return state != .notConnected || !exchange.requests.isEmpty
        }
        try await service.accept("i1", .application(["answer": "a"]))
        try await connected
        #expect(exchange.methods.filter { $0 == "invite.accept" }.count == 1)
        await service.disconnect()
        await exchange.stop()
    }

    @Test("CONN-3, CONN-4: A dropped connection comes back by itself and is resumed where it was")
    func reconnecting() async throws {
        try await withService { service, exchange in
            exchange.tell("notification", #"{"payload":1}"#)
            var events = service.events.makeAsyncIterator()
            _ = try await next(&events) { $0 == .notification(1) }
            exchange.dropConnections()
            #expect(await events.next() == .reconnecting)
            #expect(await events.next() == .reconnected)
            let restart = exchange.calls.filter { $0.method == "session.start" }.last
            #expect(restart?.params["resume"] == ["session": "s1", "after": 1])
            #expect(exchange.methods.suffix(2) == ["session.start", "device.register"])
        }
    }

    @Test("CONN-4: An exchange that is killed and started again on its port is found again")
    func restartedExchange() async throws {
        let exchange = ScriptedExchange()
        try await exchange.start(on: Fixtures.group)
        let port = exchange.port
        let service = try Fixtures.service(port: port)
        try await service.connect()
        var events = service.events.makeAsyncIterator()
        #expect(await events.next() == .connected)
        await exchange.stop()
        #expect(await events.next() == .reconnecting)
        let again = ScriptedExchange()
        try await again.start(on: Fixtures.group, port: port)
        let event = await events.next()
        #expect(event == .reconnected, "\(String(describing: event))")
        #expect(again.methods == ["session.start", "device.register"])
        await service.disconnect()
        #expect(await events.next() == .disconnected)
        await again.stop()
    }

    @Test("CONN-3: A refused token gives the error before disconnected, and the connection has failed")
    func refusedToken() async throws {
        let exchange = ScriptedExchange()
        exchange.answer("session.start") { _ in
            #"!{"code":4003,"message":"Unknown token.","data":{"name":"tokenRejected"}}"#
        }
        try await exchange.start(on: Fixtures.group)
        let service = try Fixtures.service(port: exchange.port)
        let error = try await failure { try await service.connect() }
        #expect((error as? SignalingError)?.code == .tokenRejected)
        #expect(await service.connectionState == .failed)
        var events = service.events.makeAsyncIterator()
        guard case .error(let told)? = await events.next() else {
            Issue.record("the error was not told")
            return
        }
        #expect(told.code == .tokenRejected)
        #expect(await events.next() == .disconnected)
        #expect(exchange.methods == ["session.start"], "it is not tried again")
        await exchange.stop()
    }

    @Test("CONN-9: A clean disconnect ends the session, closes with a close frame, and stays down")
    func cleanDisconnect() async throws {
        let exchange = ScriptedExchange()
        try await exchange.start(on: Fixtures.group)
        let service = try Fixtures.service(port: exchange.port)
        try await service.connect()
        await service.disconnect()
        #expect(exchange.methods == ["session.start", "device.register", "session.end"])
        #expect(await service.connectionState == .notConnected)
        let error = try await failure { try await service.accept("i", .application(.null)) }
        #expect((error as? SignalingError)?.code == .notAuthenticated)
        try await service.connect()
        #expect(await service.connectionState == .connected, "it can be connected again")
        await service.disconnect()
        await exchange.stop()
    }

    @Test("AUTH-3: An anonymous device registers nothing and may join a room")
    func anonymous() async throws {
        let exchange = ScriptedExchange()
        exchange.answer("session.start") { _ in
            #"{"session":"s","connection":"c","user":"guest","public_ids":[],"resumed":false,"sequence":0,"#
                + #""keepalive_seconds":25,"anonymous":true}"#
        }
        exchange.answer("room.join") { _ in #"{"participants":[{"connection":"c9","user":"bob"}]}"# }
        try await withService(exchange, { $0.credentials = .anonymous(name: "guest") }) { service, exchange in
            let participants = try await service.join(room: "r", data: nil)
            #expect(participants == [RoomParticipant(connection: "c9", user: "bob")])
            #expect(exchange.methods == ["session.start", "room.join"])
        }
    }

    @Test("Garbage, unknown events and answers to nothing are ignored; the connection stays open")
    func garbage() async throws {
        try await withService { service, exchange in
            for text in [
                "{", "[]", "null", #"{"jsonrpc":"2.0","id":999,"result":{}}"#,
                #"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
                #"{"jsonrpc":"2.0","method":"event","params":{"sequence":-1}}"#,
                String(repeating: "[", count: 60_000), #"{"jsonrpc":"2.0","id":1,"method":"you.do","params":{}}"#,
            ] { exchange.sendRaw(text) }
            exchange.tell("brandNew", #"{"x":1}"#)
            var events = service.events.makeAsyncIterator()
            let event = try await next(&events) { if case .unknown = $0 { true } else { false } }
            #expect(event == .unknown(type: "brandNew", data: ["x": 1]))
            #expect(await service.connectionState == .connected)
        }
    }

    @Test("An event that is larger than a client must take is passed over; the next is heard, on the same connection")
    func oversizedEvent() async throws {
        try await withService { service, exchange in
            for bytes in [SignalLimits.deliveredBytes, 1_000_000, 4_000_000] {
                exchange.tell("notification", #"{"payload":"\#(String(repeating: "x", count: bytes))"}"#)
            }
            exchange.tell("notification", #"{"payload":"\#(String(repeating: "y", count: 262_000))"}"#)
            exchange.tell("notification", #"{"payload":1}"#)
            var events = service.events.makeAsyncIterator()
            var told: [Int] = []
            while let event = await events.next() {
                #expect(event != .reconnecting)
                guard case .notification(let payload) = event else { continue }
                told.append(payload.string?.utf8.count ?? 0)
                if payload == 1 { break }
            }
            #expect(told == [262_000, 0])
            #expect(exchange.methods.count { $0 == "session.start" } == 1)
        }
    }

    @Test("CONN-7: A room that is sent in pages is asked for to its end, and each participant is reported once")
    func roomInPages() async throws {
        let exchange = ScriptedExchange()
        exchange.answer("room.join") { params in
            switch params["after"]?.integer {
            case nil: #"{"participants":[{"connection":"c1","user":"bob"}],"next":4}"#
            case 4: #"{"participants":[{"connection":"c2","user":"ann"},{"connection":"c3","user":"cy"}],"next":9}"#
            default: #"{"participants":[]}"#
            }
        }
        try await withService(exchange) { service, exchange in
            let participants = try await service.join(room: "r", data: "d")
            #expect(participants.map(\.connection) == ["c1", "c2", "c3"])
            let asked = exchange.calls.filter { $0.method == "room.join" }.map { $0.params["after"]?.integer }
            #expect(asked == [nil, 4, 9])
        }
    }

    @Test("CONN-3: A socket closed with 4001 while the session starts is final, though an answer was awaited")
    func closedWhileStarting() async throws {
        let exchange = ScriptedExchange()
        exchange.answer("session.start") { _ in
            exchange.closeNewest(code: 4001)
            return ""
        }
        try await exchange.start(on: Fixtures.group)
        let service = try Fixtures.service(port: exchange.port)
        let error = try await failure { try await service.connect() }
        #expect((error as? SignalingError)?.code == .tokenRejected, "\(error)")
        #expect(await service.connectionState == .failed)
        await exchange.stop()
    }

    @Test("CONN-9: Connecting again while the goodbye is still under way leads to a new connection")
    func connectWhileDisconnecting() async throws {
        try await withService { service, exchange in
            async let gone: Void = service.disconnect()
            try await until { await service.connectionState != .connected }
            try await service.connect()
            await gone
            #expect(await service.connectionState == .connected)
            #expect(exchange.methods.filter { $0 == "session.start" }.count == 2)
        }
    }

    @Test("A request without an answer fails in its time")
    func unanswered() async throws {
        let exchange = ScriptedExchange()
        exchange.answer("invite.cancel") { _ in "" }
        try await withService(exchange, { $0.requestTimeout = .milliseconds(50) }) { service, _ in
            let error = try await failure { try await service.cancel("i1", .application(.null)) }
            #expect((error as? SignalingError)?.code == .timedOut)
        }
    }

    @Test("A message too large for the exchange is refused here with the limit")
    func tooLarge() async throws {
        try await withService { service, exchange in
            let huge = JSONValue.string(String(repeating: "x", count: 70_000))
            let error = try await failure { try await service.accept("i1", .application(huge)) }
            #expect((error as? SignalingError)?.code == .tooLarge)
            #expect("\(error)".contains("65536"))
            #expect(!exchange.methods.contains("invite.accept"))
        }
    }

    @Test("Over TLS with its own trust root a device connects as well")
    func secure() async throws {
        let (certificate, context) = try Fixtures.selfSigned()
        let exchange = ScriptedExchange()
        try await exchange.start(on: Fixtures.group, tls: context)
        let service = try Fixtures.service(port: exchange.port, scheme: "https") { $0.trustRootFile = certificate }
        try await service.connect()
        try await service.accept("i1", .application(.null))
        #expect(await service.connectionState == .connected)
        await service.disconnect()
        await exchange.stop()
    }

    @Test("A port that answers the upgrade with a page is no exchange, and is not asked again")
    func notUpgraded() async throws {
        let server = try await ScriptedServer.start(on: Fixtures.group) { request in
            switch request.path {
            case "/v1.1/login": ScriptedAnswer(body: #"{"token":"T"}"#)
            case "/v1/allidentities": ScriptedAnswer(body: #"{"public_ids":[],"routing_id":""}"#)
            case "/v1/connection":
                ScriptedAnswer(
                    body: #"{"websocket_url":"ws://\#(request.headers["Host"][0])/x","ice_servers":[],"#
                        + #""keepalive_seconds":25,"resume_window_seconds":60}"#)
            default: ScriptedAnswer(status: 404)
            }
        }
        let service = try Fixtures.service(port: server.port)
        let error = try await failure { try await service.connect() }
        #expect((error as? SignalingError)?.code == .notAnExchange, "\(error)")
        #expect("\(error)".contains("404"))
        await server.stop()
    }

    @Test("A server that is not there is reported as such when attempts are limited, and a bad configuration at once")
    func notThere() async throws {
        let service = try Fixtures.service(port: 1) { $0.loginPatience = .zero }
        let error = try await failure { try await service.connect() }
        #expect((error as? SignalingError)?.code == .serverUnreachable)

        let plain = #expect(throws: SignalingError.self) {
            try Fixtures.service(port: 1) { $0.addresses = .init("http://exchange.example") }
        }
        #expect(plain?.code == .plainTextRefused)
        let trust = #expect(throws: SignalingError.self) {
            try Fixtures.service(port: 1) { $0.trustRootFile = "/nowhere/root.pem" }
        }
        #expect(trust?.code == .badConfiguration)
    }
}
