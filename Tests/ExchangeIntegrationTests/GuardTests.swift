@testable import ExchangeServer
@testable import ExchangeCore
import Foundation
import SignalSupport
import SignalWire
import Testing

private let json = ["Authorization": ServerFixture.basic, "Content-Type": "application/json; charset=utf-8"]

@Suite(.timeLimit(.minutes(5))) struct GuardTests {
    private func login(
        _ user: UserID, _ password: String, from address: String? = nil, _ client: RawClient
    ) async -> RawClient.Response {
        var headers = json
        headers["X-Forwarded-For"] = address
        return await client.request(
            "POST", "/v1.1/login", headers,
            body: #"{"type":"Password","user_id":"\#(user)","password":"\#(password)"}"#)
    }

    @Test(
        "Logins that fail too often get 429 with Retry-After, by address and by account, and the owner gets in from home"
    )
    func guesses() async throws {
        var configuration = ServerFixture.configuration()
        configuration.trustedProxies = ["127.0.0.1"]
        configuration.failedLogins.perAddress = 3
        configuration.failedLogins.perAccount = 5
        configuration.failedLogins.window = .seconds(3_600)
        try await ServerFixture.withServer(configuration) { server in
            let client = try await RawClient.connect(port: server.port)
            defer { client.close() }
            let right = ServerFixture.password
            #expect(await login("alice", right, from: "192.0.2.1", client).status == 200)
            for _ in 0..<3 { #expect(await login("alice", "wrong", from: "198.51.100.1", client).status == 401) }
            let refused = await login("alice", right, from: "198.51.100.1", client)
            #expect(refused.status == 429)
            let seconds = try #require(refused.headers["retry-after"].flatMap { Int($0) })
            #expect((1...1_200).contains(seconds))
            #expect(refused.body.contains("tooManyRequests"))
            for _ in 0..<2 {
                #expect(await login("alice@localhost", "wrong", from: "198.51.100.2", client).status == 401)
            }
            #expect(await login("alice", right, from: "198.51.100.3", client).status == 429, "from anywhere")
            #expect(await login("alice", right, from: "192.0.2.1", client).status == 200, "but not from home")
            // A name that is nobody's is treated alike.
            for number in 0..<5 {
                #expect(await login("nobody", "wrong", from: "203.0.113.\(number)", client).status == 401)
            }
            #expect(await login("nobody", "wrong", from: "203.0.113.9", client).status == 429)
        }
    }

    @Test("What a proxy that is not trusted says of its client counts for nothing")
    func forgedAddress() async throws {
        var configuration = ServerFixture.configuration()
        configuration.failedLogins.perAddress = 3
        try await ServerFixture.withServer(configuration) { server in
            let client = try await RawClient.connect(port: server.port)
            defer { client.close() }
            for number in 0..<3 {
                #expect(await login("bob", "wrong", from: "192.0.2.\(number)", client).status == 401)
            }
            #expect(await login("bob", "wrong", from: "192.0.2.9", client).status == 429)
        }
    }

    @Test("A client that floods its connection is refused with 4290, then closed with 1008, and others hear none of it")
    func flood() async throws {
        var configuration = ServerFixture.configuration()
        configuration.messagesPerSecond = 1
        configuration.messageBurst = 50
        try await ServerFixture.withServer(configuration) { server in
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            for number in 0..<300 {
                bob.raw.sendText(#"{"jsonrpc":"2.0","id":\#(number),"method":"ping"}"#)
            }
            var (answers, refusals, code) = (0, 0, Int?.none)
            while let frame = await bob.raw.frame() {
                if frame.closeCode != nil {
                    code = frame.closeCode
                } else if frame.text.contains(#""code":4290"#) {
                    refusals += 1
                } else {
                    answers += 1
                }
            }
            #expect(code == 1008 && (48...60).contains(answers) && refusals == 101)
            _ = try await alice.call(Ping())
            alice.raw.close()
        }
    }

    @Test("A client that floods its connection with pings is closed with 1008, and others hear none of it")
    func pings() async throws {
        try await ServerFixture.withServer { server in
            let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
            let bob = try await ServerFixture.device("b", of: "bob", port: server.port)
            for _ in 0..<20_000 { bob.raw.sendFrame(9, []) }
            var code: Int?
            while code == nil, let frame = await bob.raw.frame() { code = frame.closeCode }
            #expect(code == 1008)
            _ = try await alice.call(Ping())
            alice.raw.close()
            bob.raw.close()
        }
    }

    @Test("Every answer forbids browsers to sniff its type; headers about TLS are sent with TLS only")
    func headers() async throws {
        try await ServerFixture.withServer { server in
            let client = try await RawClient.connect(port: server.port)
            defer { client.close() }
            for path in ["/v1/connection", "/nowhere", "/v1.1/login"] {
                let headers = await client.request("GET", path).headers
                #expect(headers["x-content-type-options"] == "nosniff", "\(path)")
                #expect(headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'")
                #expect(headers["referrer-policy"] == "no-referrer" && headers["cache-control"] == "no-store")
                #expect(headers["strict-transport-security"] == nil)
            }
        }
    }
}
