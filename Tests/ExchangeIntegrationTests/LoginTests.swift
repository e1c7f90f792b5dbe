@testable import ExchangeServer
import NIOPosix
import SignalSupport
import SignalWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct LoginTests {
    private let json = ["Authorization": ServerFixture.basic, "Content-Type": "application/json; charset=utf-8"]

    private func failure(_ response: RawClient.Response) throws -> String {
        try SignalCoding.decode(RESTFailure.self, from: Array(response.body.utf8)).error.code
    }

    @Test("AUTH-1: A media-token login gives everything that the contract reads from it, and a Trace-Id")
    func mediaToken() async throws {
        try await ServerFixture.withServer { server in
            let client = try await RawClient.connect(port: server.port)
            let body =
                #"{"type":"Cima","media_token":"media-token-of-alice","access_type":"offline","scope":"mappings"}"#
            let response = await client.request("POST", "/v1.1/login", json, body: body)
            #expect(response.status == 200)
            #expect(response.headers["trace-id"]?.count == 16)
            #expect(response.headers["content-type"] == "application/json; charset=utf-8")
            #expect(response.headers.keys.allSatisfy { !$0.hasPrefix("x-") || $0 == "x-content-type-options" })
            let login = try SignalCoding.decode(LoginResponse.self, from: Array(response.body.utf8))
            #expect(login.id == "alice" && login.routingID == "alice" && login.idMappingCount == 1)
            #expect(login.expiresIn == 3_600 && login.refreshToken != nil)
            #expect(login.userData == .init(customerGUID: "alice", email: "alice@example.org"))
            #expect(login.token.secret.count == 43)

            // The same connection goes on.
            let identities = await client.request(
                "GET", "/v1/allidentities", ["Authorization": "Bearer \(login.token.secret)"])
            #expect(identities.body == #"{"public_ids":["alice@localhost"],"routing_id":"alice"}"#)
            client.close()
        }
    }

    @Test("AUTH-2, CONN-1: A token gives identities and connection resources; without one, 401 with the Trace-Id in it")
    func resources() async throws {
        try await ServerFixture.withServer { server in
            let token = try await ServerFixture.token(of: "bob", port: server.port)
            let client = try await RawClient.connect(port: server.port)
            let response = await client.request("GET", "/v1/connection", ["Authorization": "Bearer \(token)"])
            let resources = try SignalCoding.decode(ConnectionResources.self, from: Array(response.body.utf8))
            #expect(resources.webSocketURL == "ws://localhost/v1/rtc")
            #expect(resources.keepaliveSeconds == 25 && resources.resumeWindowSeconds == 60)

            for header in [[:], ["Authorization": "Bearer x"], ["Authorization": ServerFixture.basic]] {
                let refused = await client.request("GET", "/v1/allidentities", header)
                #expect(refused.status == 401)
                #expect(try failure(refused) == "tokenRejected")
                let trace = try #require(refused.headers["trace-id"])
                #expect(refused.body.contains(trace))
                #expect(refused.headers["www-authenticate"] != nil)
            }
            client.close()
        }
    }

    @Test("AUTH-3: An anonymous login takes a name that no user has, and opens neither identities nor invites")
    func anonymous() async throws {
        try await ServerFixture.withServer { server in
            let client = try await RawClient.connect(port: server.port)
            let response = await client.request("POST", "/v1.1/login/anonymous", json, body: #"{"user_id":"guest"}"#)
            #expect(response.status == 200)
            let token = try SignalCoding.decode(AnonymousLoginResponse.self, from: Array(response.body.utf8)).token
            let bearer = ["Authorization": "Bearer \(token.secret)"]
            #expect(await client.request("GET", "/v1/allidentities", bearer).status == 403)
            #expect(await client.request("GET", "/v1/connection", bearer).status == 200)
            for body in [#"{"user_id":"alice"}"#, #"{"user_id":"alice@localhost"}"#] {
                let refused = await client.request("POST", "/v1.1/login/anonymous", json, body: body)
                #expect(refused.status == 403)
            }
            #expect(await client.request("POST", "/v1.1/login/anonymous", json, body: #"{"user_id":""}"#).status == 400)

            let socket = try await RPCClient(RawClient.connect(port: server.port))
            let device = DeviceDescription(id: "g", name: "")
            let session = try await socket.call(SessionStart(token: token, device: device))
            #expect(session.isAnonymous && session.user == "guest")
            await #expect(throws: RPCError.self) {
                _ = try await socket.call(InviteSend(to: "alice", ttl: 1, idempotencyKey: "k"))
            }
            #expect(try await socket.call(RoomJoin(room: "lobby")).participants == [])
            client.close()
            socket.raw.close()
        }
    }

    @Test("AUTH-12: Every wrong login has its own code, and no secret shows in any answer or log line")
    func wrongLogins() async throws {
        let log = LogCapture()
        try await ServerFixture.withServer(log: log) { server in
            let client = try await RawClient.connect(port: server.port)
            var bodies = ""
            func login(_ body: String, _ headers: [String: String]) async throws -> (Int, String) {
                let response = await client.request("POST", "/v1.1/login", headers, body: body)
                bodies += response.body
                return (response.status, response.status == 200 ? "" : try failure(response))
            }
            let password = #"{"type":"Password","user_id":"alice","password":"\#(ServerFixture.password)"}"#
            #expect(try await login(password, json) == (200, ""))
            bodies = ""
            let wrong = #"{"type":"Password","user_id":"alice","password":"wrong-s3cret"}"#
            #expect(try await login(wrong, json) == (401, "wrongPassword"))
            let nobody = #"{"type":"Password","user_id":"nobody","password":"wrong-s3cret"}"#
            #expect(try await login(nobody, json) == (401, "wrongPassword"))
            let none = #"{"type":"Password","user_id":"bob","password":"wrong-s3cret"}"#
            #expect(try await login(none, json) == (401, "wrongPassword"))
            let token = #"{"type":"Cima","media_token":"wrong-t0ken"}"#
            #expect(try await login(token, json) == (401, "wrongMediaToken"))
            #expect(try await login(password, [:]) == (401, "unknownAppKey"))
            #expect(try await login(password, ["Authorization": "Basic ????"]) == (401, "unknownAppKey"))
            // base64 of `app:wrong-app-s3cret`.
            let app = ["Authorization": "Basic YXBwOndyb25nLWFwcC1zM2NyZXQ="]
            #expect(try await login(password, app) == (401, "unknownAppKey"))
            #expect(try await login("{", json) == (400, "badRequest"))
            #expect(try await login(#"{"type":"Cima"}"#, json) == (400, "badRequest"))
            #expect(try await login(#"{"type":"Dance","media_token":"wrong-t0ken"}"#, json) == (400, "badRequest"))
            #expect(await server.counters().refusedLogins == 7)

            let device = try await ServerFixture.device("b", of: "bob", port: server.port)
            device.raw.sendText(#"{"jsonrpc":"2.0","id":1,"method":"session.start","params":{"token":"wrong-t0ken"}}"#)
            _ = await device.raw.frame()
            device.raw.close()
            client.close()
            let secrets = [
                "s3cret", "t0ken", ServerFixture.password, "media-token-of", "app-secret", "YXBwO",
                try await ServerFixture.token(of: "bob", port: server.port),
            ]
            for secret in secrets {
                #expect(!log.text.contains(secret), "\(secret) was logged")
                #expect(!bodies.contains(secret), "\(secret) was answered")
            }
            #expect(log.text.contains("Logged in") && log.text.contains("Refused a login"))
        }
    }

    @Test("Wrong paths, methods and bodies are answered as in HTTP, and the exchange continues")
    func wrongRequests() async throws {
        try await ServerFixture.withServer { server in
            let client = try await RawClient.connect(port: server.port)
            #expect(await client.request("GET", "/nowhere").status == 404)
            let wrongMethod = await client.request("GET", "/v1.1/login?x=1")
            #expect(wrongMethod.status == 405 && wrongMethod.headers["allow"] == "POST")
            #expect(await client.request("GET", "/v1/rtc").status == 400)
            client.close()

            let large = try await RawClient.connect(port: server.port)
            let body = String(repeating: "x", count: 65_537)
            #expect(await large.request("POST", "/v1.1/login", json, body: body).status == 413)
            large.close()

            let chunked = try await RawClient.connect(port: server.port)
            chunked.send(Array("POST /v1.1/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
            for _ in 0..<5 { chunked.send(Array("4000\r\n".utf8) + [UInt8](repeating: 32, count: 16_384) + [13, 10]) }
            #expect(await chunked.response().status == 413)
            chunked.close()

            let garbage = try await RawClient.connect(port: server.port)
            garbage.send([UInt8](repeating: 0xFE, count: 1_000))
            #expect([0, 400].contains(await garbage.response().status))
            garbage.close()
            _ = try await ServerFixture.token(of: "bob", port: server.port)
        }
    }
}
