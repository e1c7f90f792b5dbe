import CallControl
import JSON
import Foundation
import NIOHTTP1
import SignalWire
import Testing

@testable import SignalingClient

@Suite("REST client, against a real HTTP server")
struct RESTTests {
    private static let loginBody =
        #"{"token":"T","refresh_token":"R","expires_in":"3600","id":"u1","idmapping_count":2,"routing_id":"r1","#
        + #""user_data":{"cust_guid":"g","email":"a@x"}}"#

    private func serve(
        _ answer: @escaping @Sendable (RecordedRequest) -> ScriptedAnswer
    ) async throws -> ScriptedServer {
        try await ScriptedServer.start(on: Fixtures.group, answer: answer)
    }

    private func json(_ text: String) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    private func failure(
        _ answer: ScriptedAnswer, _ credentials: HandsetServiceConfiguration.Credentials = .mediaToken("media-secret")
    ) async throws -> ServiceFailure {
        let server = try await serve { _ in answer }
        let rest = try Fixtures.rest(
            Fixtures.configuration("http://localhost:\(server.port)", credentials: credentials))
        let error = try await SignalingClientTests.failure { try await rest.login() }
        await server.stop()
        return try #require(error as? ServiceFailure)
    }

    @Test("AUTH-1, AUTH-2: A media-token login sends exactly the agreed headers and body, then asks for identities")
    func mediaToken() async throws {
        let server = try await serve { request in
            request.path == "/v1.1/login"
                ? ScriptedAnswer(body: Self.loginBody)
                : ScriptedAnswer(body: #"{"public_ids":["alice@x","+4930"],"routing_id":"r1"}"#)
        }
        let rest = try Fixtures.rest(Fixtures.configuration("http://localhost:\(server.port)"))
        let login = try await rest.login()
        #expect(login.token.secret == "T")
        #expect(login.publicIDs == ["alice@x", "+4930"])

        let (first, second) = (server.requests[0], server.requests[1])
        #expect(first.method == "POST" && first.path == "/v1.1/login")
        #expect(first.headers["Content-Type"] == ["application/json; charset=utf-8"])
        #expect(first.headers["Authorization"] == ["Basic YXBwOmFwcC1zZWNyZXQ="])
        #expect(first.headers["User-Agent"] == ["Handset/1.2.3 Linux"])
        #expect(
            try json(first.body) == [
                "type": "Cima", "media_token": "media-secret", "access_type": "offline", "scope": "mappings",
            ])
        #expect(second.method == "GET" && second.path == "/v1/allidentities" && second.body.isEmpty)
        #expect(second.headers["Authorization"] == ["Bearer T"])
        #expect(second.headers["User-Agent"] == ["Handset/1.2.3 Linux"])
        await server.stop()
    }

    @Test("AUTH-9: A login whose user the identity service does not name is ended, so that attempts do not gather")
    func unnamed() async throws {
        let unavailable = ScriptedAnswer(
            status: 503, body: #"{"error":{"code":"unavailable","message":"No."}}"#)
        for (answer, endsIt) in [(unavailable, true), (ScriptedAnswer(hangsUp: true), false)] {
            let server = try await serve { request in
                switch request.path {
                case "/v1.1/login": ScriptedAnswer(body: #"{"token":"T","expires_in":60}"#)
                case "/v1.1/logout": ScriptedAnswer(body: "{}")
                default: answer
                }
            }
            let rest = try Fixtures.rest(Fixtures.configuration("http://localhost:\(server.port)"))
            _ = try await SignalingClientTests.failure { try await rest.login() }
            #expect(server.requests.map(\.path).contains("/v1.1/logout") == endsIt)
            #expect(server.requests.last?.headers["Authorization"] == ["Bearer T"])
            await server.stop()
        }
    }

    @Test("AUTH-1: A password login names the user and says that it is one")
    func password() async throws {
        let server = try await serve { request in
            request.path == "/v1.1/login"
                ? ScriptedAnswer(body: #"{"token":"T","expires_in":60}"#)
                : ScriptedAnswer(body: #"{"public_ids":[],"routing_id":""}"#)
        }
        let rest = try Fixtures.rest(
            Fixtures.configuration("http://127.0.0.1:\(server.port)/", credentials: .password(user: "bob", "pw")))
        _ = try await rest.login()
        let body = try json(server.requests[0].body)
        #expect(body["type"] == "Password" && body["user_id"] == "bob" && body["password"] == "pw")
        await server.stop()
    }

    @Test("AUTH-3: An anonymous login sends the name and the app token, and asks for no identities")
    func anonymous() async throws {
        let server = try await serve { _ in ScriptedAnswer(body: #"{"token":"A"}"#) }
        let rest = try Fixtures.rest(
            Fixtures.configuration("http://localhost:\(server.port)", credentials: .anonymous(name: "guest")))
        #expect(try await rest.login().token.secret == "A")
        #expect(server.requests.count == 1)
        #expect(server.requests[0].path == "/v1.1/login/anonymous")
        #expect(server.requests[0].headers["Authorization"] == ["Basic YXBwOmFwcC1zZWNyZXQ="])
        #expect(try json(server.requests[0].body) == ["user_id": "guest"])
        await server.stop()
    }

    @Test("CONN-1: The connection's resources are asked for with the bearer token")
    func resources() async throws {
        let server = try await serve { _ in
            ScriptedAnswer(
                body: #"{"websocket_url":"wss://x/v1/rtc","ice_servers":[{"urls":["turn:t"],"username":"u","#
                    + #""credential":"c"}],"keepalive_seconds":20,"resume_window_seconds":60}"#)
        }
        let rest = try Fixtures.rest(Fixtures.configuration("http://localhost:\(server.port)"))
        let resources = CallControl.ConnectionResources(try await rest.resources(token: .init("T")))
        #expect(
            resources
                == CallControl.ConnectionResources(
                    webSocketURL: "wss://x/v1/rtc",
                    iceServers: [CallControl.ICEServer(urls: ["turn:t"], username: "u", credential: "c")],
                    keepalive: .seconds(20), resumeWindow: .seconds(60)))
        #expect(server.requests[0].headers["Authorization"] == ["Bearer T"])
        await server.stop()
    }

    @Test("AUTH-11: A 401 is final and carries the service's words and the Trace-Id")
    func refused() async throws {
        let failure = try await failure(
            ScriptedAnswer(
                status: 401, headers: [("Trace-Id", "t-77")],
                body: #"{"error":{"code":"wrongPassword","message":"The password is wrong."}}"#))
        #expect(failure.remedy == .none)
        #expect(failure.error.code == .loginRefused)
        #expect(failure.error.traceID == "t-77")
        #expect("\(failure.error)".contains("The password is wrong (Trace-Id t-77)"))
    }

    @Test("AUTH-11: A 403 is final")
    func forbidden() async throws {
        let failure = try await failure(ScriptedAnswer(status: 403, body: "nothing to read"))
        #expect(failure.remedy == .none)
        #expect(failure.error.code == .notAllowed)
    }

    @Test("AUTH-11: A 429 and a 503 are worth another try, no sooner than Retry-After says")
    func unwell() async throws {
        let busy = try await failure(
            ScriptedAnswer(status: 429, headers: [("Retry-After", "17")], body: "slow down"))
        #expect(busy.remedy == .retry(after: .seconds(17)))
        #expect(busy.error.code == .tooManyRequests)
        let down = try await failure(ScriptedAnswer(status: 503, body: ""))
        #expect(down.remedy == .retry(after: nil))
        #expect(down.error.code == .serverError)
    }

    @Test("AUTH-12: No error says the password, the media token or the app's secret")
    func secrets() async throws {
        let broken = try await failure(
            ScriptedAnswer(status: 401, body: "{}"), .password(user: "bob", "very-secret-password"))
        #expect(!"\(broken)".contains("very-secret") && !"\(broken)".contains("app-secret"))
        let configuration = Fixtures.configuration("http://localhost:1")
        var dumped = "\(configuration)"
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("media-secret") && !dumped.contains("app-secret"))
    }

    @Test("A server that is no exchange is distinguished from one that does not answer")
    func notAnExchange() async throws {
        let page = try await failure(ScriptedAnswer(body: "<html>Welcome</html>"))
        #expect(page.error.code == .notAnExchange && page.remedy == .none)
        let missing = try await failure(ScriptedAnswer(status: 404, body: "<html>Not here</html>"))
        #expect(missing.error.code == .notAnExchange && missing.remedy == .none)
        let moved = try await failure(ScriptedAnswer(status: 302, headers: [("Location", "/x")], body: ""))
        #expect(moved.error.code == .notAnExchange)

        let rest = try Fixtures.rest(Fixtures.configuration("http://127.0.0.1:1"))
        let error = try await SignalingClientTests.failure { try await rest.login() }
        let absent = try #require(error as? ServiceFailure)
        #expect(absent.error.code == .serverUnreachable)
        #expect(absent.remedy == .retry(after: nil))
        #expect("\(absent.error)".contains("nothing listens at 127.0.0.1:1"))
    }

    @Test("A server that hangs up instead of answering is worth another try")
    func hangUp() async throws {
        let failure = try await failure(ScriptedAnswer(hangsUp: true))
        #expect(failure.remedy == .retry(after: nil))
        #expect(failure.error.code == .disconnected)
    }

    @Test("An untrusted certificate is refused with the remedy, and trusted once its file is named")
    func certificates() async throws {
        let (certificate, context) = try Fixtures.selfSigned()
        let server = try await ScriptedServer.start(on: Fixtures.group, tls: context) { request in
            request.path == "/v1.1/login"
                ? ScriptedAnswer(body: Self.loginBody)
                : ScriptedAnswer(body: #"{"public_ids":[],"routing_id":""}"#)
        }
        var configuration = Fixtures.configuration("https://localhost:\(server.port)")
        let rest = try Fixtures.rest(configuration)
        let error = try await SignalingClientTests.failure { try await rest.login() }
        let refused = try #require(error as? ServiceFailure)
        #expect(refused.error.code == .certificateNotTrusted)
        #expect(refused.remedy == .none)
        #expect(refused.error.advice.contains("trust root"))

        configuration.trustRootFile = certificate
        #expect(try await Fixtures.rest(configuration).login().token.secret == "T")

        // The same certificate under a name that is not in it.
        configuration.addresses = .init("https://127.0.0.1:\(server.port)")
        let misnamed = try Fixtures.rest(configuration)
        let other = try await SignalingClientTests.failure { try await misnamed.login() }
        #expect((other as? ServiceFailure)?.error.code == .certificateNotTrusted)
        await server.stop()
    }

    @Test("TLS to a port that speaks none is reported as such")
    func tlsToPlain() async throws {
        let server = try await serve { _ in ScriptedAnswer() }
        let rest = try Fixtures.rest(Fixtures.configuration("https://localhost:\(server.port)"))
        let error = try await SignalingClientTests.failure { try await rest.login() }
        #expect((error as? ServiceFailure)?.error.code == .notAnExchange, "\(error)")
        await server.stop()
    }
}
