import ExchangeServer
import JSON
import NIOCore
import NIOPosix
import SignalWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct SocketTests {
    @Test("Two devices meet over real sockets: invite, accept, signal, hang-up, goodbye")
    func call() async throws {
        try await ServerFixture.withServer { server in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let data: JSONValue = ["offer": ["type": "offer", "sdp": "v=0\r\n"]]
            let sent = try await alice.call(
                InviteSend(to: "bob@localhost", data: data, ttl: 30, idempotencyKey: "k"))
            guard case .inviteReceived(let received) = try await bob.event() else {
                Issue.record("no invite")
                return
            }
            #expect(received.invite == sent.invite && received.data == data && received.inviter == "alice")
            _ = try await bob.call(InviteAccept(invite: sent.invite, data: ["answer": "x"]))
            let answer = InviteAnswered(invite: sent.invite, invitee: "bob", device: "b", data: ["answer": "x"])
            #expect(try await alice.event() == .inviteAccepted(answer))
            #expect(try await alice.event() == .inviteEnded(InviteEnded(invite: sent.invite)))
            _ = try await alice.call(CallSignal(invite: sent.invite, type: "candidate", data: "c"))
            let signal = CallSignalled(invite: sent.invite, type: "candidate", data: "c", from: "alice")
            #expect(try await bob.event() == .callSignal(signal))
            _ = try await bob.call(CallEnd(invite: sent.invite, reason: "completed", durationMilliseconds: 7))
            let ended = CallEnded(invite: sent.invite, reason: "completed", durationMilliseconds: 7, from: "bob")
            #expect(try await alice.event() == .callEnded(ended))

            let counters = await server.counters()
            #expect(counters.invites == 1 && counters.calls == 1 && counters.openCalls == 0)
            #expect(counters.openSessions == 2 && counters.sessions == 2 && counters.malformed == 0)
            _ = try await alice.call(SessionEnd())
            alice.raw.sendFrame(8, [0x03, 0xE8])
            #expect(await alice.raw.frame()?.closeCode == 1000)
            #expect(await alice.raw.frame() == nil)
            bob.raw.close()
        }
    }

    @Test("INV-7: The ttl fires over real sockets though the inviter's connection is gone")
    func timeOut() async throws {
        try await ServerFixture.withServer { server in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let sent = try await alice.call(InviteSend(to: "bob", ttl: 0.2, idempotencyKey: "k"))
            alice.raw.close()
            _ = try await bob.event()
            #expect(try await bob.event() == .inviteTimedOut(InviteTimedOut(invite: sent.invite, invitees: ["bob"])))
            bob.raw.close()
        }
    }

    @Test(
        "AUTH-6: A request before login is refused as notAuthenticated, and a connection with a wrong token is closed"
    )
    func notAuthenticated() async throws {
        try await ServerFixture.withServer { server in
            let client = try await RPCClient(RawClient.connect(port: server.port))
            _ = try await client.call(Ping())
            do {
                _ = try await client.call(RoomJoin(room: "lobby"))
                Issue.record("joined without a login")
            } catch let error as RPCError {
                #expect(error.known == .notAuthenticated && error.data?.name == "notAuthenticated")
            }
            let device = DeviceDescription(id: "d", name: "")
            await #expect(throws: RPCError.self) {
                _ = try await client.call(SessionStart(token: Redacted("wrong"), device: device))
            }
            #expect(await client.raw.frame()?.closeCode == 4001)
            client.raw.close()
        }
    }

    @Test("Malformed messages are answered with their code and counted, and the connection continues")
    func malformed() async throws {
        try await ServerFixture.withServer { server in
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let cases: [([UInt8], Int)] = [
                (Array("nonsense".utf8), -32_700), ([0xFF, 0xFE, 0x00], -32_700), ([], -32_700),
                (Array(String(repeating: "[", count: 60_000).utf8), -32_700), (Array("[]".utf8), -32_600),
                (Array(#"{"jsonrpc":"2.0","id":9,"method":"dance"}"#.utf8), -32_601),
                (Array(#"{"jsonrpc":"2.0","id":9,"method":"room.join"}"#.utf8), -32_602),
                (Array(#"{"jsonrpc":"2.0","method":"ping"}"#.utf8), -32_600),
            ]
            for (bytes, code) in cases {
                bob.raw.sendFrame(1, bytes)
                let answer = try RPCMessage(decoding: try #require(await bob.raw.frame()).payload)
                guard case .failure(_, let error) = answer.kind else {
                    Issue.record("accepted")
                    continue
                }
                #expect(error.code == code)
            }
            _ = try await bob.call(Ping())
            #expect(await server.counters().malformed == cases.count)
            bob.raw.close()
        }
    }

    @Test("A message in fragments is put together, and pings between them are answered")
    func fragments() async throws {
        try await ServerFixture.withServer { server in
            let client = try await RPCClient(RawClient.connect(port: server.port))
            let text = Array(#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.utf8)
            client.raw.sendFrame(1, Array(text[..<5]), isFinal: false)
            client.raw.sendFrame(9, [1, 2, 3])
            client.raw.sendFrame(0, Array(text[5..<9]), isFinal: false)
            client.raw.sendFrame(0, Array(text[9...]))
            #expect(await client.raw.frame() == RawClient.Frame(opcode: 10, payload: [1, 2, 3]))
            #expect(await client.raw.frame()?.text == #"{"id":1,"jsonrpc":"2.0","result":{}}"#)
            client.raw.close()
        }
    }

    @Test("Frames that are too long, not masked, not text or out of place close the connection with the right code")
    func badFrames() async throws {
        try await ServerFixture.withServer { server in
            let half = [UInt8](repeating: 32, count: 40_000)
            let cases: [(Int, (RawClient) -> Void)] = [
                (1009, { $0.sendFrame(1, [UInt8](repeating: 32, count: 65_537)) }),
                (
                    1009,
                    {
                        $0.sendFrame(1, half, isFinal: false)
                        $0.sendFrame(0, half)
                    }
                ),
                (1002, { $0.sendFrame(1, [123, 125], isMasked: false) }),
                (1002, { $0.sendFrame(0, [123, 125]) }),
                (
                    1002,
                    {
                        $0.sendFrame(1, [123], isFinal: false)
                        $0.sendFrame(1, [125])
                    }
                ),
                (1008, { $0.sendFrame(2, [1, 2, 3]) }),
            ]
            for (code, misbehave) in cases {
                let client = try await RPCClient(RawClient.connect(port: server.port))
                misbehave(client.raw)
                #expect(await client.raw.frame()?.closeCode == code)
                client.raw.sendFrame(8, [UInt8(code >> 8), UInt8(code & 255)])
                #expect(await client.raw.frame() == nil)
            }
            #expect(await server.counters().badFrames == 5)
        }
    }

    @Test("CONN-11: A notification of the operator reaches the device unchanged")
    func notification() async throws {
        try await ServerFixture.withServer { server in
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let payload: JSONValue = ["text": "ü \u{0}", "list": [1, 2.5, nil, true]]
            server.notify(user: "bob", payload: payload)
            #expect(try await bob.event() == .notification(NotificationReceived(payload: payload)))
            bob.raw.close()
        }
    }

    @Test("A client that does not read what it is sent is dropped and counted, and the others continue")
    func slowClient() async throws {
        try await ServerFixture.withServer { server in
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            try await bob.raw.channel.setOption(.autoRead, value: false).get()
            let payload = JSONValue.string(String(repeating: "x", count: 60_000))
            var sent = 0
            while await server.counters().slowClients == 0, sent < 5_000 {
                server.notify(user: "bob", payload: payload)
                sent += 1
            }
            let counters = await server.counters()
            #expect(counters.slowClients == 1)
            #expect(counters.openSessions == 0)
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            _ = try await alice.call(Ping())
            alice.raw.close()
            bob.raw.close()
        }
    }

    @Test(
        "CONN-12: The operator asks devices to move; one that resumes on another connection continues, unnoticed by the user"
    )
    func move() async throws {
        try await ServerFixture.withServer { server in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let token = try await ServerFixture.token(of: "bob", port: server.port)
            let device = DeviceDescription(id: "b", name: "b")
            let bob = try await RPCClient(RawClient.connect(port: server.port))
            let session = try await bob.call(SessionStart(token: Redacted(token), device: device))
            for client in [alice, bob] { _ = try await client.call(RoomJoin(room: "r")) }
            server.requestMoves(within: .seconds(30), to: "wss://elsewhere/v1/rtc")
            let asked = ExchangeEvent.moveRequested(
                MoveRequested(withinSeconds: 30, webSocketURL: "wss://elsewhere/v1/rtc"))
            #expect(try await bob.event() == asked)
            guard case .connectionCreated = try await alice.event() else {
                Issue.record("Bob did not come")
                return
            }
            #expect(try await alice.event() == asked)
            let moved = try await RPCClient(RawClient.connect(port: server.port))
            let resume = SessionStart.Resume(session: session.session, after: 1)
            let result = try await moved.call(SessionStart(token: Redacted(token), device: device, resume: resume))
            #expect(result.resumed && result.connection == session.connection)
            #expect(await bob.raw.frame()?.closeCode == 1008)
            _ = try await moved.call(RoomSignal(room: "r", type: "t"))
            guard case .roomSignal(let signal) = try await alice.event() else {
                Issue.record("Alice heard something else first")
                return
            }
            #expect(signal.from == session.connection)
            for client in [alice, bob, moved] { client.raw.close() }
        }
    }

    @Test("An exchange that stops asks each client to move, closes with 1001, and is gone afterwards")
    func stop() async throws {
        let server = try await ExchangeServer.start(
            ServerFixture.configuration(), on: MultiThreadedEventLoopGroup.singleton, logger: LogCapture().makeLogger())
        let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
        let idle = try await RawClient.connect(port: server.port)
        async let stopped: Void = server.stop()
        #expect(try await bob.event() == .moveRequested(MoveRequested(withinSeconds: 0)))
        #expect(await bob.raw.frame()?.closeCode == 1001)
        await stopped
        #expect(await bob.raw.frame() == nil)
        #expect(await idle.response().status == 0)
        await #expect(throws: (any Error).self) { _ = try await RawClient.connect(port: server.port) }
    }
}
