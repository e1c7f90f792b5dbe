import ExchangeCore
import ExchangeServer
import JSON
import NIOCore
import NIOPosix
import SignalSupport
import SignalWire
import Testing

/// WHIP and WHEP over HTTP, with a device that the test plays over its WebSocket.
@Suite(.timeLimit(.minutes(1))) struct StreamTests {
    private static func configuration() -> ExchangeConfiguration {
        var configuration = ServerFixture.configuration()
        for index in configuration.users.indices {
            let digest = SecretDigest(of: "stream-token-of-\(configuration.users[index].id)")
            configuration.users[index].streamTokens = [digest]
        }
        configuration.allowedOrigins = ["https://studio.example.org"]
        configuration.iceServers = [
            ICEServerConfiguration(urls: ["stun:stun.example.org:3478"]),
            ICEServerConfiguration(
                urls: ["turn:turn.example.org?transport=udp"],
                access: .fixed(username: "al\"ice", credential: Redacted("s3c"))),
        ]
        configuration.streamRinging = .seconds(20)
        return configuration
    }

    private static let streamToken = "Bearer stream-token-of-bob"

    private static func description(
        _ direction: String, ufrag: String = "clnt", setup: String = "actpass", kind: String = "audio"
    ) -> String {
        let fingerprint = "sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":")
        return [
            "v=0", "o=- 7 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "m=\(kind) 9 UDP/TLS/RTP/SAVPF 111",
            "c=IN IP4 0.0.0.0", "a=mid:0", "a=ice-ufrag:\(ufrag)", "a=ice-pwd:passwordpasswordpassword",
            "a=fingerprint:\(fingerprint)", "a=setup:\(setup)", "a=rtcp-mux", "a=\(direction)",
            "a=rtpmap:111 opus/48000/2",
        ].map { $0 + "\r\n" }.joined()
    }

    private static func headers(_ type: String?, token: String? = streamToken) -> [String: String] {
        var headers: [String: String] = [:]
        headers["Content-Type"] = type
        headers["Authorization"] = token
        return headers
    }

    private static let fragmentType = "application/trickle-ice-sdpfrag"

    /// Sends an offer and lets `device` take it; answers with the client's response and the invite.
    private func stream(
        _ client: RawClient, to device: RPCClient, kind: String = "whip", token: String = streamToken
    ) async throws -> (RawClient.Response, InviteReceived) {
        let offer = Self.description(kind == "whip" ? "sendonly" : "recvonly")
        client.begin(
            "POST", "/\(kind)/bob", Self.headers("application/sdp", token: token), body: offer)
        guard case .inviteReceived(let invite) = try await device.event() else {
            throw RPCClient.Unexpected(what: "no invite")
        }
        // With its end: that the answer waits for candidates is tried in virtual time.
        let text =
            Self.description(kind == "whip" ? "recvonly" : "sendonly", ufrag: "devi", setup: "active")
            + "a=candidate:1 1 UDP 2130706431 127.0.0.1 40000 typ host\r\na=end-of-candidates\r\n"
        _ = try await device.call(
            InviteAccept(invite: invite.invite, data: ["answer": ["type": "answer", "sdp": .string(text)]]))
        return (await client.response(), invite)
    }

    @Test("A stream is created, receives candidates, and ends, in both directions", arguments: ["whip", "whep"])
    func whole(kind: String) async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            let (created, invite) = try await stream(client, to: device, kind: kind)
            #expect(invite.inviter == "bob")
            #expect(invite.data?["offer"]?["sdp"]?.string?.contains("a=ice-ufrag:clnt\r\n") == true)
            #expect(created.status == 201)
            #expect(created.headers["content-type"] == "application/sdp")
            #expect(created.headers["etag"] == "\"1\"")
            #expect(created.body.contains("a=candidate:1 1 UDP 2130706431 127.0.0.1 40000 typ host\r\n"))
            #expect(created.body.hasSuffix("a=end-of-candidates\r\n"))
            let location = try #require(created.headers["location"])
            #expect(location.hasPrefix("/\(kind)/session/") && location.utf8.count > 50)

            let body = "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\na=candidate:9 1 UDP 1 127.0.0.1 50009 typ host\r\n"
            var headers = Self.headers(Self.fragmentType)
            headers["If-Match"] = "\"1\""
            let taken = await client.request("PATCH", location, headers, body: body)
            #expect(
                taken.status == 204 && taken.headers["content-length"] == nil && taken.headers["content-type"] == nil)
            guard case .callSignal(let signal) = try await device.event() else {
                Issue.record("no signal")
                return
            }
            #expect(signal.data?["candidate"] == "candidate:9 1 UDP 1 127.0.0.1 50009 typ host")

            #expect(await client.request("DELETE", location, Self.headers(nil)).status == 200)
            guard case .callEnded(let end) = try await device.event() else {
                Issue.record("no end")
                return
            }
            #expect(end.invite == invite.invite && end.reason == "completed")
            #expect(await client.request("DELETE", location, Self.headers(nil)).status == 404)
            let counters = await server.counters()
            #expect(counters.openStreams == 0 && counters.openCalls == 0 && counters.openSessions == 1)
            client.close()
        }
    }

    @Test("The client receives STUN and TURN servers")
    func links() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            let (created, _) = try await stream(client, to: device)
            // The client keeps the last header of a name.
            #expect(
                created.headers["link"]
                    == "<turn:turn.example.org?transport=udp>; rel=\"ice-server\"; username=\"al\\\"ice\"; "
                    + "credential=\"s3c\"; credential-type=\"password\"")
            client.close()
        }
    }

    @Test("An access token streams as its own user, who alone may end it, also after logging in again")
    func accessTokens() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            let token = try await ServerFixture.token(of: "alice", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            let (created, invite) = try await stream(client, to: device, token: "bearer \(token)")
            #expect(created.status == 201 && invite.inviter == "alice")
            let location = try #require(created.headers["location"])
            let foreign = try await ServerFixture.token(of: "bob", port: server.port)
            for (given, status) in [(nil, 401), ("Bearer \(foreign)", 403), ("Bearer nonsense", 401)] {
                #expect(await client.request("DELETE", location, Self.headers(nil, token: given)).status == status)
            }
            let other = location.replacing("/whip/", with: "/whep/")
            #expect(await client.request("DELETE", other, Self.headers(nil, token: "Bearer \(token)")).status == 404)
            let again = try await ServerFixture.token(of: "alice", port: server.port)
            #expect(await client.request("DELETE", location, Self.headers(nil, token: "Bearer \(again)")).status == 200)
            client.close()
        }
    }

    @Test("Who has no business here is turned away with a problem that says why")
    func refusals() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            let alice = "Bearer " + (try await ServerFixture.token(of: "alice", port: server.port))
            let guestBody = String(
                decoding: try SignalCoding.encode(AnonymousLoginRequest(userID: "guest")), as: UTF8.self)
            let login = await client.request(
                "POST", "/v1.1/login/anonymous", ["Authorization": ServerFixture.basic], body: guestBody)
            let guest = try SignalCoding.decode(AnonymousLoginResponse.self, from: Array(login.body.utf8)).token.secret
            let sdp = "application/sdp"
            let offer = Self.description("sendonly")
            let cases: [(path: String, token: String?, type: String?, body: String, status: Int, code: String)] = [
                ("/whip/bob", nil, sdp, offer, 401, "tokenRejected"),
                ("/whip/bob", "Basic eDp5", sdp, offer, 401, "tokenRejected"),
                ("/whip/bob", "Bearer nonsense", sdp, offer, 401, "tokenRejected"),
                ("/whip/alice", Self.streamToken, sdp, offer, 403, "notAllowed"),
                ("/whip/bob", "Bearer \(guest)", sdp, offer, 403, "notAllowed"),
                ("/whip/nobody", alice, sdp, offer, 404, "unknownUser"),
                ("/whip/bob", alice, "application/json", offer, 415, "wrongType"),
                ("/whip/bob", alice, nil, offer, 415, "wrongType"),
                ("/whip/bob", alice, sdp, "", 400, "malformed"),
                ("/whip/bob", alice, sdp, "hello", 400, "malformed"),
                ("/whip/bob", alice, sdp, Self.description("sendonly", kind: "video"), 422, "unusable"),
                ("/whip/bob", alice, sdp, Self.description("recvonly"), 422, "unusable"),
                ("/whep/bob", alice, sdp, Self.description("sendonly"), 422, "unusable"),
                ("/whip/bob", alice, sdp, Self.description("sendonly", ufrag: "x"), 422, "unusable"),
                ("/whip/bob", alice, sdp, offer + String(repeating: "a=x\r\n", count: 7_000), 413, "tooLarge"),
                ("/whip/bob%40localhost", alice, "application/SDP; charset=utf-8", offer, 409, "noDeviceOnline"),
            ]
            for entry in cases {
                let response = await client.request(
                    "POST", entry.path, Self.headers(entry.type, token: entry.token), body: entry.body)
                #expect(response.status == entry.status, "\(entry.path) \(entry.code) \(response.body)")
                #expect(response.headers["content-type"] == "application/problem+json")
                let problem = try SignalCoding.decode(JSONValue.self, from: Array(response.body.utf8))
                #expect(problem["code"]?.string == entry.code, "\(entry.status)")
                #expect(problem["status"]?.integer == Int64(entry.status))
                #expect(problem["detail"]?.string?.contains("Trace-Id") == true)
                #expect((response.headers["www-authenticate"] != nil) == (entry.status == 401))
                #expect((response.headers["retry-after"] != nil) == (entry.status == 409))
            }
            #expect(await server.counters().openSessions == 0)
            client.close()
        }
    }

    @Test("A stream to a trunk's account is refused as not allowed, and costs no stream")
    func trunk() async throws {
        var configuration = Self.configuration()
        configuration.trunks = [Trunk(user: "bob", numbers: [try #require(NumberPattern("+49*"))])]
        try await ServerFixture.withServer(configuration) { server in
            let client = try await RawClient.connect(port: server.port)
            let alice = "Bearer " + (try await ServerFixture.token(of: "alice", port: server.port))
            for path in ["/whip/bob", "/whep/bob", "/whip/bob%40localhost"] {
                let offer = Self.description(path.hasPrefix("/whip") ? "sendonly" : "recvonly")
                let response = await client.request(
                    "POST", path, Self.headers("application/sdp", token: alice), body: offer)
                #expect(response.status == 403, "\(response.body)")
                let problem = try SignalCoding.decode(JSONValue.self, from: Array(response.body.utf8))
                #expect(problem["code"]?.string == "notAllowed")
            }
            #expect(await server.counters().openSessions == 0)
            client.close()
        }
    }

    @Test("What a path does not take is refused with what it takes")
    func methods() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            for (path, allowed) in [("/whip/bob", "POST, OPTIONS"), ("/whep/session/x", "PATCH, DELETE, OPTIONS")] {
                for method in ["GET", "PUT"] {
                    let response = await client.request(method, path, Self.headers(nil))
                    #expect(response.status == 405 && response.headers["allow"] == allowed, "\(method) \(path)")
                }
            }
            #expect(await client.request("POST", "/whip/session/x", Self.headers(nil)).status == 405)
            #expect(await client.request("PATCH", "/whip/bob", Self.headers(nil)).status == 405)
            #expect(await client.request("GET", "/whip", Self.headers(nil)).status == 404)
            client.close()
        }
    }

    @Test("OPTIONS says what is taken, and lets pages of allowed origins ask and read")
    func origins() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            let plain = await client.request("OPTIONS", "/whip/bob")
            #expect(plain.status == 204 && plain.headers["accept-post"] == "application/sdp")
            #expect(plain.headers["access-control-allow-origin"] == nil)
            for origin in ["https://studio.example.org", "http://localhost"] {
                let asked = await client.request("OPTIONS", "/whip/bob", ["Origin": origin])
                #expect(asked.status == 204 && asked.headers["access-control-allow-origin"] == origin)
                #expect(asked.headers["access-control-allow-methods"] == "POST, OPTIONS")
                #expect(asked.headers["access-control-allow-headers"] == "Authorization, Content-Type, If-Match")
                #expect(asked.headers["vary"] == "Origin")
                let session = await client.request("OPTIONS", "/whip/session/x", ["Origin": origin])
                #expect(session.headers["accept-patch"] == Self.fragmentType)
                #expect(session.headers["access-control-allow-methods"] == "PATCH, DELETE, OPTIONS")
                var headers = Self.headers("application/sdp")
                headers["Origin"] = origin
                let response = await client.request("POST", "/whip/bob", headers, body: Self.description("sendonly"))
                #expect(response.status == 409 && response.headers["access-control-allow-origin"] == origin)
                #expect(response.headers["access-control-expose-headers"]?.contains("Location") == true)
            }
            for method in ["OPTIONS", "POST"] {
                let foreign = await client.request(method, "/whip/bob", ["Origin": "https://evil.example.org"])
                #expect(foreign.status == 403 && foreign.headers["access-control-allow-origin"] == nil)
            }
            client.close()
        }
    }

    @Test("PATCH is refused without a condition, with a wrong one, a wrong type or a body that is none")
    func patches() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            let (created, _) = try await stream(client, to: device)
            let location = try #require(created.headers["location"])
            let end = "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\na=end-of-candidates\r\n"
            let restart = "a=ice-ufrag:newu\r\na=ice-pwd:newpasswordnewpassword\r\n"
            let cases: [(type: String, ifMatch: String?, body: String, status: Int)] = [
                (Self.fragmentType, nil, end, 428), (Self.fragmentType, "\"7\"", end, 412),
                ("application/sdp", "\"1\"", end, 415), (Self.fragmentType, "\"1\"", "hello", 400),
                (Self.fragmentType, "\"1\"", restart, 422), (Self.fragmentType, "\"1\"", end, 204),
            ]
            for entry in cases {
                var headers = Self.headers(entry.type)
                headers["If-Match"] = entry.ifMatch
                #expect(await client.request("PATCH", location, headers, body: entry.body).status == entry.status)
            }
            client.close()
        }
    }

    @Test("A restart of ICE goes through the device and comes back as a fragment with another ETag")
    func restart() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            let (created, invite) = try await stream(client, to: device)
            let location = try #require(created.headers["location"])
            var headers = Self.headers(Self.fragmentType)
            headers["If-Match"] = "*"
            let body = "a=ice-ufrag:newu\r\na=ice-pwd:newpasswordnewpassword\r\n"
            client.begin("PATCH", location, headers, body: body)
            guard case .callSignal(let signal) = try await device.event() else {
                Issue.record("no signal")
                return
            }
            #expect(signal.type == "offer")
            #expect(signal.data?["sdp"]?.string?.contains("a=ice-ufrag:newu\r\n") == true)
            let text = Self.description("recvonly", ufrag: "dev2", setup: "active") + "a=end-of-candidates\r\n"
            let answer: JSONValue = ["type": "answer", "sdp": .string(text)]
            _ = try await device.call(CallSignal(invite: invite.invite, type: "answer", data: answer))
            let restarted = await client.response()
            #expect(restarted.status == 200 && restarted.headers["etag"] == "\"2\"")
            #expect(restarted.headers["content-type"] == Self.fragmentType)
            #expect(restarted.body.hasPrefix("a=ice-ufrag:dev2\r\n"))
            client.close()
        }
    }

    @Test("A client that closes its connection while the device rings takes the invite back")
    func disconnects() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            client.begin(
                "POST", "/whip/bob", Self.headers("application/sdp"), body: Self.description("sendonly"))
            guard case .inviteReceived(let invite) = try await device.event() else {
                Issue.record("no invite")
                return
            }
            try await client.channel.close()
            guard case .inviteCancelled(let cancelled) = try await device.event() else {
                Issue.record("not cancelled")
                return
            }
            #expect(cancelled.invite == invite.invite)
            #expect(await client.response().status == 0)
        }
    }

    @Test("Busy, declined and unanswered invites are distinguished, each with a time to come back")
    func devices() async throws {
        var configuration = Self.configuration()
        configuration.streamRinging = .seconds(3)
        try await ServerFixture.withServer(configuration) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            for (reason, status) in [("busy", 503), ("declined", 409), (nil, 503)] {
                client.begin(
                    "POST", "/whip/bob", Self.headers("application/sdp"), body: Self.description("sendonly"))
                guard case .inviteReceived(let invite) = try await device.event() else {
                    Issue.record("no invite")
                    return
                }
                if let reason {
                    _ = try await device.call(
                        InviteReject(invite: invite.invite, data: ["reason": .string(reason)]))
                } else {
                    guard case .inviteTimedOut = try await device.event() else {
                        Issue.record("no end")
                        return
                    }
                }
                let response = await client.response()
                #expect(response.status == status && response.headers["retry-after"] != nil, "\(reason ?? "none")")
            }
            client.close()
        }
    }

    @Test("The session is gone once the device hangs up, and an answer that is none is the gateway's fault")
    func hangsUp() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            let (created, invite) = try await stream(client, to: device)
            let location = try #require(created.headers["location"])
            _ = try await device.call(CallEnd(invite: invite.invite, reason: "completed", durationMilliseconds: 1))
            var headers = Self.headers(Self.fragmentType)
            headers["If-Match"] = "\"1\""
            #expect(await client.request("PATCH", location, headers, body: "a=end-of-candidates\r\n").status == 404)

            client.begin(
                "POST", "/whip/bob", Self.headers("application/sdp"), body: Self.description("sendonly"))
            guard case .inviteReceived(let second) = try await device.event() else {
                Issue.record("no invite")
                return
            }
            _ = try await device.call(InviteAccept(invite: second.invite, data: ["answer": "yes"]))
            #expect(await client.response().status == 502)
            client.close()
        }
    }

    @Test("Streams beyond an account's share are refused with a time to come back")
    func tooMany() async throws {
        try await ServerFixture.withServer(Self.configuration()) { server in
            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            var clients: [RawClient] = []
            for _ in 0..<16 {
                let client = try await RawClient.connect(port: server.port)
                clients.append(client)
                #expect(try await stream(client, to: device).0.status == 201)
            }
            let response = await clients[0].request(
                "POST", "/whip/bob", Self.headers("application/sdp"), body: Self.description("sendonly"))
            #expect(response.status == 429 && response.headers["retry-after"] != nil)
            for client in clients { client.close() }
        }
    }

    @Test("An exchange that stops notifies clients that wait, and nothing secret is in its log")
    func stops() async throws {
        let log = LogCapture()
        let server = try await ExchangeServer.start(
            Self.configuration(), on: MultiThreadedEventLoopGroup.singleton, logger: log.makeLogger())
        let device = try await ServerFixture.device("b", of: "bob", port: server.port)
        let client = try await RawClient.connect(port: server.port)
        client.begin(
            "POST", "/whip/bob", Self.headers("application/sdp"), body: Self.description("sendonly"))
        guard case .inviteReceived = try await device.event() else {
            Issue.record("no invite")
            return
        }
        await server.stop()
        #expect(await client.response().status == 503)
        #expect(!log.text.contains("stream-token-of-bob") && !log.text.contains("passwordpassword"))
    }
}
