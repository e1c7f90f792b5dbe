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

    private enum Answer {
        case standby(owner: String? = nil)
        case absent
        case silent
        case fails(SignalingError.Code)

        var failure: ServiceFailure {
            switch self {
            case .standby(let owner):
                ServiceFailure(
                    SignalingError(.serverUnreachable, activity: "log in", cause: "it is a standby"),
                    remedy: .retry(after: nil), isBurden: false, standby: .init(owner: owner))
            case .absent, .silent: Self.failure(.serverUnreachable)
            case .fails(let code): Self.failure(code)
            }
        }

        private static func failure(_ code: SignalingError.Code) -> ServiceFailure {
            ServiceFailure(
                SignalingError(code, activity: "log in", cause: "it does not serve"), remedy: .retry(after: nil))
        }

        var took: Duration {
            if case .silent = self { ServerRound.patience } else { .zero }
        }
    }

    private struct Walk {
        /// Who is asked, one after the other.
        var asked: [String] = []
        var patience: [Duration?] = []
        var end: ServiceFailure?
        var silent: ServerRound.Server?
    }

    /// Asks until the end. Those without an answer here are absent.
    private func walk(
        among servers: [ServerRound.Server] = servers, first: Int = 0, last: ServerRound.Server? = nil,
        _ answers: [Answer] = []
    ) -> Walk {
        var round = ServerRound(servers, first: servers[first], last: last)
        var walk = Walk()
        while walk.end == nil {
            let answer = answers.indices.contains(walk.asked.count) ? answers[walk.asked.count] : .absent
            walk.asked.append(round.server.events)
            walk.patience.append(round.patience)
            if case .end(let failure) = round.step(after: answer.failure, took: answer.took) { walk.end = failure }
        }
        walk.silent = round.silent
        return walk
    }

    @Test("Each is asked once, beginning with the one that served last, and only the last one for as long as one alone")
    func order() {
        let walk = walk(first: 1)
        #expect(walk.asked == ["https://b.test", "https://c.test", "https://a.test"])
        #expect(walk.patience == [ServerRound.patience, ServerRound.patience, Duration?.none])
        #expect(self.walk(among: [Self.servers[0]]).patience == [Duration?.none])
    }

    @Test("One that was silent is asked again where no other serves and none is a standby: it may only have been slow")
    func slow() {
        let walk = walk([.silent])
        #expect(walk.asked == ["https://a.test", "https://b.test", "https://c.test", "https://a.test"])
        #expect(walk.patience.count == 4 && walk.patience[3] == nil)
    }

    @Test(
        "Beside a standby, one that was silent is asked in the next round, behind the others and for as long as one alone"
    )
    func stopped() {
        let round = walk([.silent, .standby(owner: "https://a.test"), .absent])
        #expect(round.asked == ["https://a.test", "https://b.test", "https://c.test"])
        #expect(round.end?.standby != nil && round.end?.isBurden == false)
        #expect(round.silent == Self.servers[0])
        let next = walk(last: round.silent, [.standby(owner: "https://a.test"), .absent])
        #expect(next.asked == ["https://b.test", "https://a.test", "https://c.test"])
        let slow = walk(last: round.silent, [.standby(), .absent, .fails(.timedOut)])
        #expect(slow.asked == ["https://b.test", "https://c.test", "https://a.test"])
        #expect(slow.patience[2] == nil && slow.end?.standby == nil && slow.end?.isBurden == true)
    }

    @Test("The owner that a standby names is asked next, one time in a round, and never in plain text after TLS")
    func named() {
        func asked(_ owners: [String?]) -> [String] { walk(owners.map { .standby(owner: $0) }).asked }
        #expect(asked(["https://c.test"]) == ["https://a.test", "https://c.test", "https://b.test"])
        #expect(asked(["https://d.test"]) == ["https://a.test", "https://d.test", "https://b.test", "https://c.test"])
        #expect(asked(["https://a.test"]).count == 3)
        #expect(asked(["https://d.test", "https://e.test"]).count == 4)
        #expect(asked(["http://d.test"]).count == 3)
    }

    @Test(
        "A wrong address that a standby names stops no device: the others are asked, and the question fails as at a standby",
        arguments: [SignalingError.Code.certificateNotTrusted, .notAnExchange, .serverUnreachable])
    func misnamed(_ code: SignalingError.Code) {
        let walk = walk([.standby(owner: "https://d.test"), .fails(code)])
        #expect(walk.asked == ["https://a.test", "https://d.test", "https://b.test", "https://c.test"])
        let alone = self.walk(among: [Self.servers[0]], [.standby(owner: "https://d.test"), .fails(code)])
        #expect(alone.asked == ["https://a.test", "https://d.test"] && alone.end?.remedy == .retry(after: nil))
        let configured = self.walk([.fails(.certificateNotTrusted)])
        #expect(configured.asked == ["https://a.test"])
    }

    @Test("What a server refuses for another reason is not asked elsewhere")
    func refused() { #expect(walk([.fails(.loginRefused)]).asked == ["https://a.test"]) }

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
