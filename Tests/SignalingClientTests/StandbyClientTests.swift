import CallControl
import Core
import HTTPTransport
import NIOCore
import NIOPosix
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

    @Test("A standby that names the owner's address leads a client there that was not given it")
    func named() async throws {
        let owner = try await server()
        let body =
            #"{"error":{"code":"standby","message":"This exchange is a standby.","owner":"http://localhost:\#(owner.port)"}}"#
        let standby = try await server(ScriptedAnswer(status: 503, body: body))
        let client = try client(standby)
        #expect(try await login(client).token.secret == "T")
        _ = try await login(client)
        #expect(standby.requests.count == 1 && owner.requests.count == 4)
        await standby.stop()
        await owner.stop()
    }

    @Test("Two standbys that name each other do not keep a client")
    func circle() async throws {
        let other = try await server(Self.standby)
        let body =
            #"{"error":{"code":"standby","message":"This exchange is a standby.","owner":"http://localhost:\#(other.port)"}}"#
        let one = try await server(ScriptedAnswer(status: 503, body: body))
        let client = try client(one, other)
        await #expect(throws: ServiceFailure.self) { try await login(client) }
        #expect(one.requests.count == 1 && other.requests.count == 1)
        await one.stop()
        await other.stop()
    }

    @Test(
        "An exchange that accepts connections and is silent, as a stopped process, is passed over after three seconds")
    func silent() async throws {
        let stopped = try await ServerBootstrap(group: Fixtures.group).bind(host: "127.0.0.1", port: 0).get()
        let second = try await server()
        var configuration = Fixtures.configuration("http://localhost:\(try #require(stopped.localAddress?.port))")
        configuration.moreServers = ["http://localhost:\(second.port)"]
        let client = try Fixtures.rest(configuration)
        let beginning = ContinuousClock.now
        #expect(try await login(client).token.secret == "T")
        #expect(ContinuousClock.now - beginning >= ServerRound.patience)
        try await stopped.close()
        await second.stop()
    }

    @Test("An answer of an exchange that another one has replaced since counts for nothing")
    func replaced() async throws {
        func server(_ epoch: String) async throws -> ScriptedServer {
            try await ScriptedServer.start(on: Fixtures.group) { request in
                let headers = [("Exchange-Epoch", epoch)]
                return request.path == "/v1.1/login"
                    ? ScriptedAnswer(headers: headers, body: #"{"token":"T","expires_in":"3600","id":"u1"}"#)
                    : ScriptedAnswer(headers: headers, body: #"{"public_ids":["alice@x"],"routing_id":"r1"}"#)
            }
        }
        let (newer, older) = (try await server("00000001.8"), try await server("00000001.7"))
        let client = try client(newer, older)
        #expect(try await login(client).token.secret == "T")
        await newer.stop()
        let error = try #require(try await failure { try await login(client) } as? ServiceFailure)
        #expect("\(error.error)".contains("another exchange has taken over"), "\(error)")
        #expect(!older.requests.isEmpty)
        await older.stop()
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

@Suite("Who of several exchanges is asked next") struct ServerRoundTests {
    private static let servers = ["https://a.test", "https://b.test", "https://c.test"].map { ServerRound.Server($0) }

    private func failure(
        _ code: SignalingError.Code = .serverUnreachable, owner: String? = nil
    ) -> ServiceFailure {
        ServiceFailure(
            SignalingError(code, activity: "log in", cause: "it is a standby"), remedy: .retry(after: nil),
            elsewhere: owner)
    }

    /// Who is asked, one after the other.
    private func walk(
        among servers: [ServerRound.Server] = servers, first: Int = 0, took: [Duration] = [],
        owner: [Int: String] = [:]
    ) -> (asked: [String], patience: [Duration?]) {
        var round = ServerRound(servers, first: servers[first])
        var asked = [round.server.events]
        var patience = [round.patience]
        while round.moveOn(
            after: failure(owner: owner[asked.count - 1]),
            took: took.indices.contains(asked.count - 1) ? took[asked.count - 1] : .zero)
        {
            asked.append(round.server.events)
            patience.append(round.patience)
        }
        return (asked, patience)
    }

    @Test("Each is asked once, beginning with the one that served last, and only the last one for as long as one alone")
    func order() {
        let (asked, patience) = walk(first: 1)
        #expect(asked == ["https://b.test", "https://c.test", "https://a.test"])
        #expect(patience == [ServerRound.patience, ServerRound.patience, Duration?.none])
        #expect(walk(among: [Self.servers[0]]).patience == [Duration?.none])
    }

    @Test("One that was silent is asked again where no other serves: it may only have been slow")
    func slow() {
        let (asked, patience) = walk(took: [.seconds(3)])
        #expect(asked == ["https://a.test", "https://b.test", "https://c.test", "https://a.test"])
        #expect(patience.count == 4 && patience[3] == nil)
    }

    @Test("The owner that a standby names is asked next, one time in a round, and never in plain text after TLS")
    func named() {
        #expect(walk(owner: [0: "https://c.test"]).asked == ["https://a.test", "https://c.test", "https://b.test"])
        #expect(
            walk(owner: [0: "https://d.test"]).asked == [
                "https://a.test", "https://d.test", "https://b.test", "https://c.test",
            ])
        #expect(walk(owner: [0: "https://a.test"]).asked.count == 3)
        #expect(walk(owner: [0: "https://d.test", 1: "https://e.test"]).asked.count == 4)
        #expect(walk(owner: [0: "http://d.test"]).asked.count == 3)
    }

    @Test("What a server refuses for another reason is not asked elsewhere")
    func refused() {
        var round = ServerRound(Self.servers, first: Self.servers[0])
        let movesOn = round.moveOn(after: failure(.loginRefused), took: .zero)
        #expect(!movesOn)
    }

    @Test("An older epoch counts for nothing, for a minute; after that its database was restored")
    func epochs() throws {
        let (older, newer) = (try #require(OwnerEpoch("00000001.9")), try #require(OwnerEpoch("00000002.1")))
        var watch = EpochWatch()
        let steps: [(epoch: OwnerEpoch, seconds: Int, isAdmitted: Bool)] = [
            (older, 0, true), (newer, 0, true), (newer, 0, true), (older, 59, false), (older, 60, true),
            (newer, 60, true),
        ]
        for step in steps {
            let isAdmitted = watch.admits(step.epoch, at: Instant(nanoseconds: 0).advanced(by: .seconds(step.seconds)))
            #expect(isAdmitted == step.isAdmitted, "\(step)")
        }
    }
}
