import ExchangeCore
import ExchangeServer
import Foundation
import SignalSupport
import SignalWire
import Testing

/// Somebody who has a user's secret, or a copy of a token, over the wire.
@Suite(.timeLimit(.minutes(5))) struct AttackerTests {
    private static let secret = "an API key's secret, of more than 32 bytes"
    private static let json = ["Authorization": ServerFixture.basic, "Content-Type": "application/json"]

    private static func configuration() throws -> ExchangeConfiguration {
        var configuration = ServerFixture.configuration()
        configuration.apiKeys = [try #require(SigningKey(name: "school", secret: secret))]
        return configuration
    }

    private func post(
        _ path: String, _ body: some Encodable, _ headers: [String: String] = [:], on client: RawClient
    ) async throws -> RawClient.Response {
        await client.request(
            "POST", path, headers, body: String(decoding: try SignalCoding.encode(body), as: UTF8.self))
    }

    private func login(_ token: String, on client: RawClient) async throws -> LoginResponse {
        let request = LoginRequest(mediaToken: Redacted(token))
        let response = try await post("/v1.1/login", request, Self.json, on: client)
        try #require(response.status == 200, "\(response.body)")
        return try SignalCoding.decode(LoginResponse.self, from: Array(response.body.utf8))
    }

    private func refresh(_ token: Redacted<String>, on client: RawClient) async throws -> RawClient.Response {
        try await post("/v1.1/token", TokenRequest(refreshToken: token), on: client)
    }

    private func code(_ response: RawClient.Response) throws -> String {
        try SignalCoding.decode(RESTFailure.self, from: Array(response.body.utf8)).error.code
    }

    private func start(_ token: Redacted<String>, device: DeviceID = "d", port: Int) async throws -> RPCClient {
        let client = try await RPCClient(RawClient.connect(port: port))
        let _: SessionStart.Result = try await client.call(
            SessionStart(token: token, device: DeviceDescription(id: device, name: "")))
        return client
    }

    private func closeCode(_ client: RPCClient) async -> Int? {
        while let frame = await client.raw.frame() {
            if let code = frame.closeCode { return code }
        }
        return nil
    }

    @Test("AUTH-9: A revoke closes a device's socket and refuses its tokens, though 70 logins have come after its own")
    func revokeAfterManyLogins() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("users-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = ServerFixture.configuration()
        let file = UsersFile(path: folder.appendingPathComponent("users.yaml").path)
        try file.change { $0.append(Account(id: "dora", mediaTokens: [SecretDigest(of: "media-token-of-dora")])) }
        configuration.usersFile = file
        configuration.fileUsers = try file.read()
        try await ServerFixture.withServer(configuration) { server in
            let client = try await RawClient.connect(port: server.port)
            defer { client.close() }
            let first = try await login("media-token-of-dora", on: client)
            let device = try await start(first.token, port: server.port)
            for _ in 0..<70 { _ = try await login("media-token-of-dora", on: client) }
            _ = try await device.call(Ping())
            let bearer = ["Authorization": "Bearer \(first.token.secret)"]
            #expect(await client.request("GET", "/v1/connection", bearer).status == 200)
            let next = try await refresh(try #require(first.refreshToken), on: client)
            #expect(next.status == 200, "an always-on device keeps its refresh token")
            // As `handset user revoke` does.
            try file.change { $0[0].loginsSince = Int64(Date().timeIntervalSince1970) + 1 }
            #expect(await closeCode(device) == 4001)
            #expect(try code(await client.request("GET", "/v1/connection", bearer)) == "tokenRevoked")
        }
    }

    @Test("AUTH-12: A login with a weak password, whose hash could not show it, is logged without the password")
    func weakPassword() async throws {
        var configuration = ServerFixture.configuration()
        configuration.users[0].password = .hash(PasswordHash.make("Passw0rd"))
        configuration.users[1].password = .hash(PasswordHash.make("four words are enough"))
        let log = LogCapture()
        try await ServerFixture.withServer(configuration, log: log) { server in
            let client = try await RawClient.connect(port: server.port)
            defer { client.close() }
            let logins: [(UserID, String)] = [("bob", "four words are enough"), ("alice", "Passw0rd")]
            for (user, password) in logins {
                #expect(!log.text.contains("too common"))
                let request = LoginRequest(userID: user, password: Redacted(password))
                #expect(try await post("/v1.1/login", request, Self.json, on: client).status == 200)
            }
            #expect(log.text.contains("too common") && !log.text.contains("Passw0rd"))
        }
    }

    @Test("AUTH-4: A refresh token that was stolen twelve exchanges ago ends the login, its device's session included")
    func theft() async throws {
        let log = LogCapture()
        try await ServerFixture.withServer(log: log) { server in
            let client = try await RawClient.connect(port: server.port)
            defer { client.close() }
            let first = try await login("media-token-of-bob", on: client)
            let device = try await start(first.token, port: server.port)
            let stolen = try #require(first.refreshToken)
            var current = first
            for _ in 0..<12 {
                let answer = try await refresh(try #require(current.refreshToken), on: client)
                try #require(answer.status == 200, "\(answer.body)")
                current = try SignalCoding.decode(LoginResponse.self, from: Array(answer.body.utf8))
            }
            #expect(try code(try await refresh(stolen, on: client)) == "tokenRevoked")
            #expect(await closeCode(device) == 4001)
            #expect(try code(try await refresh(try #require(current.refreshToken), on: client)) == "tokenRevoked")
            #expect(log.text.contains("there is a copy of it"))
            #expect(!log.text.contains(stolen.secret))
        }
    }

    @Test("AUTH-9: A logged-out signed token is not good again in another spelling, or as another with its jti")
    func respelling() async throws {
        let key = try #require(SigningKey(name: "school", secret: Self.secret))
        func mint(id: TokenID?, seconds: Double = 600) throws -> String {
            let now = Date().timeIntervalSince1970
            return try SignedTokenMint.sign(
                SignedToken(application: "school", user: "alice", issued: now, expires: now + seconds, id: id),
                with: key)
        }
        try await ServerFixture.withServer(try Self.configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            defer { client.close() }
            func ask(_ token: String) async -> RawClient.Response {
                await client.request("GET", "/v1/connection", ["Authorization": "Bearer \(token)"])
            }
            for id in ["t-1", nil] as [TokenID?] {
                let token = try mint(id: id)
                let device = try await start(Redacted(token), port: server.port)
                let logout = await client.request("POST", "/v1.1/logout", ["Authorization": "Bearer \(token)"])
                #expect(logout.status == 200)
                #expect(await closeCode(device) == 4001)
                #expect(try code(await ask(token)) == "tokenRevoked")
                for count in 1...3 {
                    #expect(try code(await ask(token + String(repeating: "=", count: count))) == "tokenRejected")
                }
                let last = try #require(token.last)
                for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/" where other != last {
                    #expect(await ask(String(token.dropLast()) + String(other)).status == 401)
                }
            }
            let again = try mint(id: "t-1", seconds: 900)
            #expect(try code(await ask(again)) == "tokenRevoked")
            await #expect(throws: RPCError.self) { try await start(Redacted(again), port: server.port) }
            #expect(await ask(try mint(id: "t-2")).status == 200)
        }
    }
}
