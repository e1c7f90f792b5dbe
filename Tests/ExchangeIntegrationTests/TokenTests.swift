import ExchangeCore
import ExchangeServer
import Foundation
import SignalSupport
import SignalWire
import Testing

private let json = ["Authorization": ServerFixture.basic, "Content-Type": "application/json; charset=utf-8"]

@Suite(.timeLimit(.minutes(5))) struct TokenTests {
    private static let secret = "an API key's secret, of more than 32 bytes"
    private static let accessToken = "long-lived-t0ken-of-alice"

    private static func configuration() throws -> ExchangeConfiguration {
        var configuration = ServerFixture.configuration()
        configuration.apiKeys = [try #require(SigningKey(name: "school", secret: secret))]
        configuration.users[0].accessTokens = [SecretDigest(of: accessToken)]
        return configuration
    }

    private func post(_ path: String, _ body: some Encodable, _ headers: [String: String], port: Int) async throws
        -> RawClient.Response
    {
        let client = try await RawClient.connect(port: port)
        defer { client.close() }
        let text = String(decoding: try SignalCoding.encode(body), as: UTF8.self)
        return await client.request("POST", path, headers, body: text)
    }

    private func code(_ response: RawClient.Response) throws -> String {
        try SignalCoding.decode(RESTFailure.self, from: Array(response.body.utf8)).error.code
    }

    private func login(_ request: LoginRequest, port: Int) async throws -> LoginResponse {
        let response = try await post("/v1.1/login", request, json, port: port)
        try #require(response.status == 200, "\(response.body)")
        return try SignalCoding.decode(LoginResponse.self, from: Array(response.body.utf8))
    }

    private func bearer(_ token: Redacted<String>, _ path: String = "/v1/connection", port: Int) async throws
        -> RawClient.Response
    {
        let client = try await RawClient.connect(port: port)
        defer { client.close() }
        return await client.request("GET", path, ["Authorization": "Bearer \(token.secret)"])
    }

    private func mint(
        _ user: UserID, session: SignedToken.Session? = nil, from issued: Double = 0, to expires: Double = 600,
        secret: String = secret
    ) throws -> Redacted<String> {
        let now = Date().timeIntervalSince1970
        let key = try #require(SigningKey(name: "school", secret: secret))
        let token = SignedToken(
            application: "school", user: user, issued: now + issued, expires: now + expires, session: session)
        return Redacted(try SignedTokenMint.sign(token, with: key))
    }

    private func start(
        _ token: Redacted<String>, device: DeviceID = "d", port: Int
    ) async throws -> (client: RPCClient, session: SessionStart.Result) {
        let client = try await RPCClient(RawClient.connect(port: port))
        let params = SessionStart(token: token, device: DeviceDescription(id: device, name: ""))
        return (client, try await client.call(params))
    }

    /// Waits for the connection's close frame.
    private func closeCode(_ client: RPCClient) async -> Int? {
        while let frame = await client.raw.frame() {
            if let code = frame.closeCode { return code }
        }
        return nil
    }

    @Test("AUTH-4: A long-lived access token logs its user in, and no other; a refresh token gives the next pair")
    func refresh() async throws {
        try await ServerFixture.withServer(try Self.configuration()) { server in
            let token = Redacted(Self.accessToken)
            let first = try await login(LoginRequest(userID: "alice@localhost", accessToken: token), port: server.port)
            #expect(first.id == "alice")
            let wrong = try await post(
                "/v1.1/login", LoginRequest(userID: "bob", accessToken: token), json, port: server.port)
            #expect(wrong.status == 401)
            #expect(try code(wrong) == "wrongAccessToken")

            let refresh = try #require(first.refreshToken)
            let answer = try await post("/v1.1/token", TokenRequest(refreshToken: refresh), [:], port: server.port)
            #expect(answer.status == 200, "\(answer.body)")
            let second = try SignalCoding.decode(LoginResponse.self, from: Array(answer.body.utf8))
            #expect(second.id == "alice" && second.expiresIn == 3_600)
            #expect(second.token != first.token && second.refreshToken != refresh)
            #expect(try await bearer(first.token, port: server.port).status == 200, "good to its end")
            #expect(try await bearer(second.token, port: server.port).status == 200)

            let used = try await start(first.token, port: server.port)
            let renewed = try await used.client.call(SessionRenew(token: second.token))
            #expect(renewed.expiresIn > 3_500)
            used.client.raw.close()

            let none = try await post("/v1.1/token", TokenRequest(refreshToken: first.token), [:], port: server.port)
            #expect(none.status == 401)
            #expect(try code(none) == "tokenRejected")
        }
    }

    @Test("AUTH-9: After a logout its tokens are refused by name and its connection is closed with 4001")
    func logout() async throws {
        try await ServerFixture.withServer { server in
            let login = try await login(LoginRequest(mediaToken: Redacted("media-token-of-bob")), port: server.port)
            let device = try await start(login.token, port: server.port).client
            let headers = ["Authorization": "Bearer \(login.token.secret)"]
            let client = try await RawClient.connect(port: server.port)
            let answer = await client.request("POST", "/v1.1/logout", headers)
            #expect(answer.status == 200 && answer.body == "{}")
            #expect(await closeCode(device) == 4001)
            let again = await client.request("POST", "/v1.1/logout", headers)
            #expect(again.status == 401)
            #expect(try code(again) == "tokenRevoked")
            let refresh = TokenRequest(refreshToken: try #require(login.refreshToken))
            #expect(try code(try await post("/v1.1/token", refresh, [:], port: server.port)) == "tokenRevoked")
            await #expect(throws: RPCError.self) { try await start(login.token, port: server.port) }
            client.close()
        }
    }

    @Test("AUTH-5: A token for another session, past its expiry or with a wrong signature is refused, saying which")
    func signedTokens() async throws {
        let log = LogCapture()
        try await ServerFixture.withServer(try Self.configuration(), log: log) { server in
            let full = try await start(try mint("alice"), port: server.port)
            #expect(full.session.user == "alice" && !full.session.isAnonymous)
            #expect(full.session.publicIDs == ["alice@localhost"])

            let pass = try mint("visitor", session: .init(id: "class-7", role: .moderator, data: "seat=4"))
            let visitor = try await start(pass, port: server.port)
            #expect(visitor.session.user == "visitor" && visitor.session.isAnonymous)
            _ = try await full.client.call(RoomJoin(room: "class-7"))
            let there = try await visitor.client.call(RoomJoin(room: "class-7"))
            #expect(there.participants.map(\.user) == ["alice"])
            let created = try await full.client.event()
            guard case .connectionCreated(let data) = created else {
                Issue.record("\(created)")
                return
            }
            #expect(data.user == "visitor" && data.role == .moderator && data.data == "seat=4")

            func refusal(_ body: () async throws -> Void) async -> RPCErrorCode? {
                do { try await body() } catch { return (error as? RPCError)?.known }
                return nil
            }
            let port = server.port
            let other = await refusal { _ = try await visitor.client.call(RoomJoin(room: "class-8")) }
            #expect(other == .tokenForAnotherSession)
            let old = try mint("alice", from: -100, to: -1)
            let forged = try mint("alice", secret: String(repeating: "wrong", count: 10))
            let nobody = try mint("nobody")
            let endless = try mint("alice", to: 4_000_000)
            for (token, code) in [
                (old, RPCErrorCode.tokenExpired), (forged, .tokenWrongSignature), (nobody, .tokenRejected),
                (endless, .tokenRejected),
            ] {
                #expect(await refusal { _ = try await start(token, port: port) } == code)
                let rest = try await bearer(token, port: port)
                #expect(rest.status == 401)
                #expect(try self.code(rest) == code.name)
                #expect(!log.text.contains(token.secret) && !rest.body.contains(token.secret))
            }
            #expect(try await bearer(pass, "/v1/allidentities", port: port).status == 403)
            #expect(try await bearer(pass, port: port).status == 200)
            // A renewal that is not good leaves the session as it is.
            #expect(
                await refusal { _ = try await full.client.call(SessionRenew(token: forged)) } == .tokenWrongSignature)
            _ = try await full.client.call(SessionRenew(token: try mint("alice")))
            #expect(!log.text.contains(Self.secret))
            visitor.client.raw.close()
            full.client.raw.close()
        }
    }

    @Test("AUTH-4: A client hears on its connection that its token ends, and is closed with 4001 when nothing is done")
    func expiry() async throws {
        var configuration = try Self.configuration()
        configuration.tokenNotice = .seconds(3_600)
        try await ServerFixture.withServer(configuration) { server in
            // Whole seconds since 1970 on one side and a clock on the other: a token for one second may end at once.
            let device = try await start(try mint("alice", to: 3), port: server.port).client
            guard case .tokenExpiring(let data) = try await device.event() else {
                Issue.record("another event")
                return
            }
            #expect(data.expiresIn <= 3)
            #expect(await closeCode(device) == 4001)
        }
    }

    /// Waits for a line in the log; the suite's time limit bounds it.
    private func appears(_ text: String, in log: LogCapture) async throws {
        while !log.text.contains(text) { try await Task.sleep(for: .milliseconds(20)) }
    }

    @Test("A user who is added can log in while the exchange runs, and one who is removed is logged out")
    func usersFile() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("users-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = ServerFixture.configuration()
        let file = UsersFile(path: folder.appendingPathComponent("users.yaml").path)
        configuration.usersFile = file
        let log = LogCapture()
        try await ServerFixture.withServer(configuration, log: log) { server in
            let request = LoginRequest(mediaToken: Redacted("media-token-of-dora"))
            #expect(try await post("/v1.1/login", request, json, port: server.port).status == 401)
            try file.change { $0.append(Account(id: "dora", mediaTokens: [SecretDigest(of: "media-token-of-dora")])) }
            try await appears("\"users\": 1", in: log)
            let token = try await login(request, port: server.port).token
            let device = try await start(token, port: server.port).client
            try "users: [".write(toFile: file.path, atomically: true, encoding: .utf8)
            try await appears("The users file cannot be used", in: log)
            _ = try await device.call(Ping())
            try "users: []".write(toFile: file.path, atomically: true, encoding: .utf8)
            #expect(await closeCode(device) == 4001)
            #expect(try code(try await bearer(token, port: server.port)) == "tokenRevoked")
        }
    }
}
