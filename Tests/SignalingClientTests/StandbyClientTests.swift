import CallControl
import SignalWire
import Testing

@testable import SignalingClient

@Suite("A client of exchanges of which one serves and the others are standbys")
struct StandbyClientTests {
    private static let standby = ScriptedAnswer(
        status: 503, body: #"{"error":{"code":"standby","message":"This exchange is a standby: a owns the database."}}"#
    )

    private func client(_ servers: ScriptedServer...) throws -> RESTClient {
        let addresses = servers.map { "http://localhost:\($0.port)" }
        var configuration = Fixtures.configuration(addresses[0])
        configuration.moreServers = Array(addresses.dropFirst())
        return try Fixtures.rest(configuration)
    }

    private func server(_ answer: ScriptedAnswer? = nil) async throws -> ScriptedServer {
        try await ScriptedServer.start(on: Fixtures.group) { request in
            if let answer { return answer }
            return request.path == "/v1.1/login"
                ? ScriptedAnswer(body: #"{"token":"T","expires_in":"3600","id":"u1"}"#)
                : ScriptedAnswer(body: #"{"public_ids":["alice@x"],"routing_id":"r1"}"#)
        }
    }

    private func login(_ client: RESTClient) async throws(ServiceFailure) -> RESTClient.Login {
        try await client.anywhere { rest async throws(ServiceFailure) in try await rest.login() }
    }

    @Test("A standby is passed over at once, and the server that served last is asked first")
    func passedOver() async throws {
        let (first, second) = (try await server(Self.standby), try await server())
        let client = try client(first, second)
        #expect(try await login(client).token.secret == "T")
        #expect(first.requests.count == 1 && second.requests.count == 2)
        _ = try await login(client)
        #expect(first.requests.count == 1 && second.requests.count == 4)
        await first.stop()
        await second.stop()
    }

    @Test("A server that is not there is passed over, too")
    func gone() async throws {
        let (first, second) = (try await server(), try await server())
        let client = try client(first, second)
        await first.stop()
        #expect(try await login(client).token.secret == "T")
        await second.stop()
    }

    @Test("CONN-4: That all servers are standbys is no burden to any, and worth another attempt")
    func nobodyServes() async throws {
        let (first, second) = (try await server(Self.standby), try await server(Self.standby))
        let client = try client(first, second)
        let error = try #require(try await failure { try await login(client) } as? ServiceFailure)
        #expect(error.remedy == .retry(after: nil) && !error.isBurden)
        #expect(first.requests.count == 1 && second.requests.count == 1)
        await first.stop()
        await second.stop()
    }

    @Test("What one exchange refuses is not asked of another")
    func refused() async throws {
        let wrong = ScriptedAnswer(status: 401, body: #"{"error":{"code":"wrongMediaToken","message":"No."}}"#)
        let (first, second) = (try await server(wrong), try await server())
        let client = try client(first, second)
        let error = try #require(try await failure { try await login(client) } as? ServiceFailure)
        #expect(error.error.code == .loginRefused && second.requests.isEmpty)
        await first.stop()
        await second.stop()
    }
}
