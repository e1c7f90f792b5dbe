@testable import ExchangeServer
import SignalSupport
import SignalWire
import TestSupport
import Testing

private let json = ["Authorization": ServerFixture.basic, "Content-Type": "application/json; charset=utf-8"]

/// Attackers who have not logged in.
@Suite(.timeLimit(.minutes(5))) struct StrangerTests {
    /// A request of which `sent` bytes of the body come, and the rest never does.
    private func hold(_ port: Int, path: String = "/v1.1/login", length: Int, sent: Int) async throws -> RawClient {
        let client = try await RawClient.connect(port: port)
        let head = "POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(length)\r\n\r\n"
        client.send(Array(head.utf8) + [UInt8](repeating: 32, count: sent))
        return client
    }

    @Test("A body without a good token is read only as far as a login can be long, however it comes")
    func bodies() async throws {
        try await ServerFixture.withServer { server in
            for path in ["/v1.1/login", "/v1.1/token", "/whip/bob", "/nowhere"] {
                let client = try await hold(server.port, path: path, length: SignalLimits.loginBytes + 1, sent: 0)
                let response = await client.response()
                #expect(response.status == 413 && response.body.contains("8192"), "\(path)")
                client.close()
            }
            let chunked = try await RawClient.connect(port: server.port)
            chunked.send(Array("POST /v1.1/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
            for _ in 0..<9 { chunked.send(Array("400\r\n".utf8) + [UInt8](repeating: 32, count: 1_024) + [13, 10]) }
            #expect(await chunked.response().status == 413)
            chunked.close()
            // Chunks of one byte have eight more around them.
            let tiny = try await RawClient.connect(port: server.port)
            tiny.send(Array("POST /v1.1/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
            tiny.send(Array(String(repeating: "0001\r\n \r\n", count: 8_000).utf8))
            #expect(await tiny.response().status == 413)
            tiny.close()
            // As long as it may be is good.
            let client = try await RawClient.connect(port: server.port)
            let body = #"{"type":"Cima","media_token":"media-token-of-bob"}"#
            let padded = body + String(repeating: " ", count: SignalLimits.loginBytes - body.utf8.count)
            #expect(await client.request("POST", "/v1.1/login", json, body: padded).status == 200)
            client.close()
        }
    }

    @Test("Who has logged in may send a description of 64 KiB; a token that is not good opens no more than a login")
    func descriptions() async throws {
        try await ServerFixture.withServer { server in
            let token = try await ServerFixture.token(of: "alice", port: server.port)
            let offer = String(repeating: "a=x\r\n", count: 5_000)
            for (given, status) in [(token, 400), ("not-a-token", 413)] {
                let client = try await RawClient.connect(port: server.port)
                let headers = ["Authorization": "Bearer \(given)", "Content-Type": "application/sdp"]
                #expect(await client.request("POST", "/whip/bob", headers, body: offer).status == status)
                client.close()
            }
        }
    }

    @Test("The head of a request that does not end is refused with 431")
    func heads() async throws {
        try await ServerFixture.withServer { server in
            let client = try await RawClient.connect(port: server.port)
            client.send(Array("GET / HTTP/1.1\r\nHost: localhost\r\n".utf8))
            for number in 0..<200 { client.send(Array("X-\(number): \(String(repeating: "x", count: 100))\r\n".utf8)) }
            #expect(await client.response().status == 431)
            client.close()
        }
    }

    @Test(
        "What is no HTTP gets one answer, and the connection ends with it, also if more is sent",
        .witnessed(slack: .seconds(5)),
        arguments: [
            "rubbish\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        ])
    func rubbish(sent: String) async throws {
        try await ServerFixture.withServer { server in
            let client = try await RawClient.connect(port: server.port)
            let begun = ContinuousClock.now
            client.send(Array(sent.utf8))
            #expect(await client.response().status == 400)
            client.send(Array(sent.utf8))
            #expect(await client.response().status == 0)
            // The end of a request that has no answer.
            #expect(begun.duration(to: .now) < .seconds(9))
            client.close()
        }
    }

    @Test("Before session.start a message is read only as far as that can be long, in one frame or many")
    func messages() async throws {
        try await ServerFixture.withServer { server in
            let half = [UInt8](repeating: 32, count: 15_000)
            let whole = try await RPCClient(RawClient.connect(port: server.port))
            whole.raw.sendFrame(1, half + half)
            #expect(await whole.raw.frame()?.closeCode == 1009)
            let parts = try await RPCClient(RawClient.connect(port: server.port))
            parts.raw.sendFrame(1, half, isFinal: false)
            for _ in 0..<100 { parts.raw.sendFrame(0, Array(half.prefix(150)), isFinal: false) }
            #expect(await parts.raw.frame()?.closeCode == 1009)

            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let ping = Array(#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#.utf8)
            alice.raw.sendFrame(1, ping + [UInt8](repeating: 32, count: SignalLimits.messageBytes - ping.count))
            #expect(await alice.raw.frame()?.text.contains("99") == true)
            alice.raw.close()
        }
    }

    @Test("Strangers share one budget: past it those who hold the longest get 503, and a login gets through at once")
    func budget() async throws {
        var configuration = ServerFixture.configuration()
        configuration.loginMemoryBytes = 100_000
        let log = LogCapture()
        try await ServerFixture.withServer(configuration, log: log) { server in
            var attackers: [RawClient] = []
            for _ in 0..<60 {
                attackers.append(try await hold(server.port, length: 8_000, sent: 7_000))
                if attackers.count % 20 == 0 { _ = try await ServerFixture.token(of: "alice", port: server.port) }
            }
            let first = await attackers[0].response()
            #expect(first.status == 503 && first.headers["retry-after"] == "2" && first.body.contains("unavailable"))
            // Of a WebSocket it is the close code, and of half a head an answer without a body.
            let socket = try await RPCClient(RawClient.connect(port: server.port))
            socket.raw.sendFrame(1, [UInt8](repeating: 32, count: 7_000), isFinal: false)
            let head = try await RawClient.connect(port: server.port)
            head.send(Array("GET / HTTP/1.1\r\nX: \(String(repeating: "x", count: 7_000))".utf8))
            for _ in 0..<40 { attackers.append(try await hold(server.port, length: 8_000, sent: 7_000)) }
            #expect(await socket.raw.frame()?.closeCode == 1013)
            #expect(await head.response().status == 503)
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            _ = try await alice.call(Ping())
            let counters = await server.counters()
            #expect(counters.crowdedOut >= 80 && counters.crowdedOut < 102)
            #expect(log.text.split(separator: "\n").count { $0.contains("use all the memory") } == 1)
            for attacker in attackers { attacker.close() }
            alice.raw.close()
        }
    }

    @Test("Clients with a login share a budget for messages that are not complete: past it the oldest socket closes")
    func partialMessages() async throws {
        var configuration = ServerFixture.configuration()
        configuration.keptMemoryBytes = 8 << 20
        let log = LogCapture()
        try await ServerFixture.withServer(configuration, log: log) { server in
            var attackers: [RPCClient] = []
            // 2 MiB are 34 of these.
            let part = [UInt8](repeating: 32, count: 60_000)
            for number in 0..<40 {
                let device = try await ServerFixture.device("d\(number)", of: "alice", port: server.port)
                if number % 2 == 0 {
                    device.raw.sendFrame(1, part, isFinal: false)
                } else {
                    device.raw.send([0x81, 0xFE, 0xFF, 0xFF, 1, 2, 3, 4] + part)
                }
                attackers.append(device)
            }
            for attacker in attackers.prefix(2) {
                var code: Int?
                while code == nil, let frame = await attacker.raw.frame() { code = frame.closeCode }
                #expect(code == 1013)
            }
            // A message that is complete at once gets through, as long as one may be.
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let ping = Array(#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#.utf8)
            bob.raw.sendFrame(1, ping + [UInt8](repeating: 32, count: SignalLimits.messageBytes - ping.count))
            var isAnswered = false
            while !isAnswered, let frame = await bob.raw.frame() { isAnswered = frame.text.contains(#""id":99"#) }
            #expect(isAnswered)
            #expect(log.text.split(separator: "\n").count { $0.contains("(kept_memory_mib)") } == 1)
            for attacker in attackers { attacker.raw.close() }
            bob.raw.close()
        }
    }

    @Test("Past the limit connections are closed at once, open ones continue, and the log reports it once")
    func connections() async throws {
        var configuration = ServerFixture.configuration()
        configuration.connections = 8
        configuration.connectionsFromThisMachine = 8
        let log = LogCapture()
        try await ServerFixture.withServer(configuration, log: log) { server in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            var held: [RawClient] = []
            while await server.counters().openConnections < 8 {
                held.append(try await RawClient.connect(port: server.port))
            }
            for _ in 0..<20 {
                let late = try await RawClient.connect(port: server.port)
                #expect(await late.request("GET", "/v1/connection").status == 0)
            }
            _ = try await alice.call(Ping())
            #expect(await server.counters().refusedConnections >= 20)
            #expect(log.text.split(separator: "\n").count { $0.contains("Refusing connections") } == 1)
            for client in held { client.close() }
            while await server.counters().openConnections > 1 {}
            #expect(try await ServerFixture.token(of: "bob", port: server.port).isEmpty == false)
            alice.raw.close()
        }
    }

    @Test(
        "This machine has half of the connections, so that a program on it locks no client out, and a key gives a proxy on it more"
    )
    func ownConnections() async throws {
        for given in [nil, 12] {
            var configuration = ServerFixture.configuration()
            configuration.connections = 20
            configuration.connectionsPerAddress = 1
            configuration.connectionsFromThisMachine = given
            let log = LogCapture()
            try await ServerFixture.withServer(configuration, log: log) { server in
                var held: [RawClient] = []
                while await server.counters().refusedConnections == 0, held.count < 40 {
                    held.append(try await RawClient.connect(port: server.port))
                }
                #expect(await server.counters().openConnections == given ?? 10)
                #expect(log.text.contains("connections_from_this_machine"))
                for client in held { client.close() }
            }
        }
    }

    @Test("Behind a trusted proxy each client has its own bound, for requests and for WebSockets")
    func proxiedConnections() async throws {
        var configuration = ServerFixture.configuration()
        configuration.trustedProxies = ["127.0.0.1"]
        configuration.connectionsPerAddress = 2
        try await ServerFixture.withServer(configuration) { server in
            func connect(for client: String, _ headers: [String: String] = [:]) async throws -> (RawClient, Int) {
                let raw = try await RawClient.connect(port: server.port)
                let named = headers.merging(["X-Forwarded-For": client]) { $1 }
                return (raw, await raw.request("GET", "/v1/rtc", named).status)
            }
            let upgrade = [
                "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            ]
            let (first, second) = (
                try await connect(for: "192.0.2.1", upgrade), try await connect(for: "192.0.2.1")
            )
            #expect(first.1 == 101 && second.1 == 400)
            #expect(try await connect(for: "192.0.2.1", upgrade).1 == 429)
            #expect(try await connect(for: "192.0.2.1").1 == 429)
            #expect(try await connect(for: "192.0.2.2", upgrade).1 == 101)
            // A connection that the proxy uses for another client now makes room.
            #expect(await second.0.request("GET", "/v1/rtc", ["X-Forwarded-For": "192.0.2.3"]).status == 400)
            #expect(try await connect(for: "192.0.2.1", upgrade).1 == 101)
        }
    }
}
