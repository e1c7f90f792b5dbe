import BlockingWork
import CallControl
import Core
import Foundation
import JSON
import NIOCore
import NIOHTTP1
import SignalWire
import TestSupport
import Testing

@testable import SignalingClient

@Suite("HandsetService and its access token", .timeLimit(.minutes(5)))
struct TokenTests {
    private let folder: String

    init() throws {
        folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    private typealias Events = AsyncStream<SignalingEvent>.Iterator

    private func withExchange(_ work: (ScriptedExchange) async throws -> Void) async throws {
        let exchange = ScriptedExchange()
        try await exchange.start(on: Fixtures.group)
        do { try await work(exchange) } catch { Issue.record(error) }
        await exchange.stop()
    }

    private func wait(for wanted: SignalingEvent, in events: inout Events) async throws {
        while let event = await events.next() {
            if event == wanted { return }
        }
        throw CancellationError()
    }

    private func login(_ token: String, refresh: String?, lifetime: Int = 3_600) -> ScriptedAnswer {
        let second = refresh.map { #","refresh_token":"\#($0)""# } ?? ""
        return ScriptedAnswer(body: #"{"token":"\#(token)","expires_in":"\#(lifetime)","id":"u1"\#(second)}"#)
    }

    private func refusal(_ code: String) -> ScriptedAnswer {
        ScriptedAnswer(status: 401, body: #"{"error":{"code":"\#(code)","message":"No."}}"#)
    }

    private func starts(_ exchange: ScriptedExchange) -> [String?] {
        exchange.calls.filter { $0.method == "session.start" }.map { $0.params["token"]?.string }
    }

    @Test("AUTH-4: A token is renewed with its refresh token before it ends, and the connection stays")
    func refreshed() async throws {
        try await withExchange { exchange in
            exchange.answer(path: "/v1.1/login") { _ in login("T1", refresh: "R1", lifetime: 1) }
            exchange.answer(path: "/v1.1/token") { _ in login("T2", refresh: "R2") }
            let service = try Fixtures.service(port: exchange.port)
            try await service.connect()
            try await until { exchange.requests.contains { $0.path == "/v1.1/token" } }
            #expect(exchange.requests.last?.body == #"{"refresh_token":"R1"}"#)
            try await until { exchange.methods.contains("session.renew") }
            #expect(exchange.calls.last { $0.method == "session.renew" }?.params["token"] == "T2")
            #expect(await service.connectionState == .connected)
            // The next connection uses the new one.
            var events = service.events.makeAsyncIterator()
            exchange.dropConnections()
            try await wait(for: .reconnected, in: &events)
            #expect(starts(exchange) == ["T1", "T2"])
            #expect(exchange.requests.count { $0.path == "/v1.1/login" } == 1)
            await service.disconnect()
        }
    }

    @Test("AUTH-4: A service that has disconnected renews nothing by itself; when it connects again it does")
    func atRest() async throws {
        try await withExchange { exchange in
            exchange.answer(path: "/v1.1/login") { _ in login("T1", refresh: "R1", lifetime: 3) }
            exchange.answer(path: "/v1.1/token") { _ in login("T3", refresh: "R3") }
            func isRenewed(_ refresh: String) -> Bool {
                exchange.requests.contains { $0.body == #"{"refresh_token":"\#(refresh)"}"# }
            }
            let first = try Fixtures.service(port: exchange.port)
            try await first.connect()
            await first.disconnect()
            // The token of the second ends after that of the first.
            exchange.answer(path: "/v1.1/login") { _ in login("T2", refresh: "R2", lifetime: 3) }
            let second = try Fixtures.service(port: exchange.port)
            try await second.connect()
            try await until { isRenewed("R2") }
            #expect(!isRenewed("R1"))
            try await first.connect()
            try await until { isRenewed("R1") }
            await first.disconnect()
            await second.disconnect()
        }
    }

    @Test("AUTH-4: An exchange that says that the token ends soon is shown a new one")
    func toldToRenew() async throws {
        try await withExchange { exchange in
            exchange.answer(path: "/v1.1/login") { _ in login("T1", refresh: "R1") }
            exchange.answer(path: "/v1.1/token") { _ in login("T2", refresh: "R2") }
            let service = try Fixtures.service(port: exchange.port)
            try await service.connect()
            exchange.tell("tokenExpiring", #"{"expires_in":60}"#)
            try await until { exchange.methods.contains("session.renew") }
            #expect(exchange.calls.last { $0.method == "session.renew" }?.params["token"] == "T2")
            await service.disconnect()
        }
    }

    @Test("AUTH-4: A connection that is closed for its token is replaced with a new token, resuming")
    func closedForToken() async throws {
        try await withExchange { exchange in
            exchange.answer(path: "/v1.1/login") { _ in login("T1", refresh: "R1") }
            exchange.answer(path: "/v1.1/token") { _ in login("T2", refresh: "R2") }
            let service = try Fixtures.service(port: exchange.port)
            try await service.connect()
            var events = service.events.makeAsyncIterator()
            exchange.closeNewest(code: 4001)
            try await wait(for: .reconnected, in: &events)
            #expect(starts(exchange) == ["T1", "T2"])
            #expect(exchange.calls.last { $0.method == "session.start" }?.params["resume"]?["session"] == "s1")
            await service.disconnect()
        }
    }

    @Test(
        "AUTH-4, CONN-3: A token that cannot be renewed gives tokenExpired, then disconnected, and is not asked for in a loop"
    )
    func notRenewed() async throws {
        try await withExchange { exchange in
            exchange.answer(path: "/v1.1/login") { _ in login("T1", refresh: "R1") }
            let service = try Fixtures.service(port: exchange.port)
            try await service.connect()
            exchange.answer(path: "/v1.1/token") { _ in refusal("tokenRejected") }
            exchange.answer(path: "/v1.1/login") { _ in refusal("wrongMediaToken") }
            var events = service.events.makeAsyncIterator()
            exchange.closeNewest(code: 4001)
            var told: [String] = []
            while let event = await events.next() {
                if case .error(let error) = event { told.append("\(error.code)") } else { told.append(caseName(event)) }
                if event == .disconnected { break }
            }
            #expect(told == ["connected", "reconnecting", "tokenExpired", "disconnected"])
            #expect(exchange.requests.count { $0.path == "/v1.1/token" } == 1)
            #expect(exchange.requests.count { $0.path == "/v1.1/login" } == 2)
            #expect(await service.connectionState == .failed)
            await service.disconnect()
        }
    }

    @Test("AUTH-4: A session token comes from a file, and is read again when the exchange refuses the old one")
    func fromFile() async throws {
        let path = folder + "/token"
        try Data("T1\n".utf8).write(to: URL(fileURLWithPath: path))
        try await withExchange { exchange in
            let service = try Fixtures.service(port: exchange.port) {
                $0.credentials = .sessionToken(user: "u1", .file(path: path))
            }
            try await service.connect()
            try Data("T2\n".utf8).write(to: URL(fileURLWithPath: path))
            var events = service.events.makeAsyncIterator()
            exchange.closeNewest(code: 4001)
            try await wait(for: .reconnected, in: &events)
            #expect(starts(exchange) == ["T1", "T2"])
            #expect(!exchange.requests.contains { $0.path.hasPrefix("/v1.1/login") })
            await service.disconnect()
        }
    }

    @Test("AUTH-4: A session token comes from a command that prints one")
    func fromCommand() async throws {
        try await withExchange { exchange in
            let service = try Fixtures.service(port: exchange.port) {
                $0.credentials = .sessionToken(user: nil, .command(["sh", "-c", "echo T-printed"]))
            }
            try await service.connect()
            #expect(starts(exchange) == ["T-printed"])
            await service.disconnect()
        }
    }

    @Test("AUTH-4, AUTH-12: What is wrong with a token command is reported, without what it printed")
    func commandFails() async throws {
        for (words, cause) in [
            (["sh", "-c", "echo secret; exit 3"], "it ended with exit code 3"),
            (["/nowhere/at/all"], "cannot start it: No such file or directory"),
            (["sh", "-c", "kill -9 $$"], "it ended with signal 9"), (["true"], "it gives nothing"),
            (["sh", "-c", "echo secret; echo secret"], "it gives more than one line"),
        ] {
            do throws(ServiceFailure) {
                _ = try await TokenSource.command(words).read()
                Issue.record("a token came of \(words)")
            } catch {
                #expect("\(error.error)".contains(cause))
                #expect(!"\(error.error)".contains("secret"))
            }
        }
    }

    @Test("More token commands that take long than cores hold up no other task")
    func slowCommands() async throws {
        let count = min(ProcessInfo.processInfo.activeProcessorCount + 1, BlockingThreads.programs.most)
        let (started, continued) = (folder + "/started", folder + "/continued")
        let ends = try [started, continued].map { path -> Int32 in
            try #require(mkfifo(path, 0o600) == 0)
            let end = open(path, O_RDWR | O_NONBLOCK)
            return try #require(end < 0 ? nil : end)
        }
        defer { for end in ends { close(end) } }
        let words = ["sh", "-c", "echo >'\(started)'; read line <'\(continued)'; echo T"]
        try await withThrowingTaskGroup(of: Redacted<String>.self) { group in
            for _ in 0..<count { group.addTask { try await TokenSource.command(words).read() } }
            var begun = 0
            var byte: UInt8 = 0
            try await until {
                while read(ends[0], &byte, 1) == 1 { begun += 1 }
                return begun == count
            }
            #expect(write(ends[1], [UInt8](repeating: UInt8(ascii: "\n"), count: count), count) == count)
            for try await token in group { #expect(token.secret == "T") }
        }
    }

    @Test("A token command that closes its output and does not end is killed")
    func unendedCommand() async throws {
        let path = folder + "/never"
        try #require(mkfifo(path, 0o600) == 0)
        let outcome = await BlockingThreads.programs.run {
            TokenCommand.run(["sh", "-c", "echo T; exec >&-; read line <'\(path)'"], within: .milliseconds(100))
        }
        guard case .failure(let failure) = outcome else {
            Issue.record("a token came of a command that has not ended")
            return
        }
        #expect(failure.text.hasPrefix("it did not end within"))
    }

    @Test(
        "AUTH-10: A device that starts again logs in with what is kept, with no secret, and the file is its owner's alone"
    )
    func kept() async throws {
        let store = { (path: String) in SessionStore(path: path, application: "app", server: "here") }(
            folder + "/session")
        try await withExchange { exchange in
            exchange.answer(path: "/v1.1/login") { _ in login("T1", refresh: "R1") }
            let first = try Fixtures.service(port: exchange.port) { $0.sessionStore = store }
            try await first.connect()
            await first.disconnect()
            let attributes = try FileManager.default.attributesOfItem(atPath: store.path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            #expect(try store.look() == .login(device: "d1", user: "u1"))

            let second = try Fixtures.service(port: exchange.port) {
                $0.sessionStore = store
                $0.credentials = .kept
            }
            try await second.connect()
            #expect(starts(exchange) == ["T1", "T1"])
            #expect(exchange.requests.count { $0.path == "/v1.1/login" } == 1)
            await second.disconnect()
        }
    }

    @Test("AUTH-8: What is kept of another application, or another user, is removed and not used")
    func foreign() async throws {
        let path = folder + "/session"
        let old = SessionStore(path: path, application: "old", server: "here")
        try await withExchange { exchange in
            let first = try Fixtures.service(port: exchange.port) { $0.sessionStore = old }
            try await first.connect()
            await first.disconnect()
            let store = SessionStore(path: path, application: "app", server: "here")
            #expect(try store.look() == .foreign)
            let second = try Fixtures.service(port: exchange.port) {
                $0.sessionStore = store
                $0.credentials = .kept
                $0.loginPatience = .zero
            }
            let error = try await failure { try await second.connect() }
            #expect((error as? SignalingError)?.code == .notAuthenticated)
            #expect(!FileManager.default.fileExists(atPath: path))
            await second.disconnect()
        }
    }

    @Test(
        "A file that is no login is refused and left alone, so that no login takes its place; an empty one is none yet")
    func noLogin() throws {
        let store = SessionStore(path: folder + "/notes", application: "app", server: "here")
        for text in ["Milk, bread", "{}", #"{"version": 2}"#] {
            try text.write(toFile: store.path, atomically: true, encoding: .utf8)
            do throws(SignalingError) {
                _ = try store.look()
                Issue.record("\(text) is taken for a login")
            } catch {
                #expect(error.code == .badConfiguration && error.advice.contains("remove this one"))
            }
            #expect(try String(contentsOfFile: store.path, encoding: .utf8) == text)
        }
        try Data().write(to: URL(fileURLWithPath: store.path))
        #expect(try store.look() == .nothing)
    }

    @Test("AUTH-9: A logout ends the session, makes the token worthless, and removes what is kept")
    func loggedOut() async throws {
        let store = SessionStore(path: folder + "/session", application: "app", server: "here")
        try await withExchange { exchange in
            exchange.answer(path: "/v1.1/logout") { _ in ScriptedAnswer(body: "{}") }
            let service = try Fixtures.service(port: exchange.port) { $0.sessionStore = store }
            try await service.connect()
            try await service.logOut()
            #expect(exchange.methods.last == "session.end")
            #expect(exchange.requests.last?.path == "/v1.1/logout")
            #expect(exchange.requests.last?.headers["Authorization"] == ["Bearer T"])
            #expect(try store.look() == .nothing)
            #expect(await service.connectionState == .notConnected)
            let late = try await failure { try await service.leave(room: "r") }
            #expect((late as? SignalingError)?.code == .notAuthenticated)
        }
    }

    @Test(
        "AUTH-9: A service for one call ends the login that it made, and never one that is kept or a token that was given"
    )
    func oneCall() async throws {
        let store = SessionStore(path: folder + "/session", application: "app", server: "here")
        let changes: [(endsIt: Bool, (inout HandsetServiceConfiguration) -> Void)] = [
            (true, { $0.endsLogin = true }),
            (true, { ($0.endsLogin, $0.credentials) = (true, .accessToken(user: "alice", .fixed("A-secret"))) }),
            (false, { _ in }),
            (false, { ($0.endsLogin, $0.sessionStore) = (true, store) }),
            // The login that the one before has kept.
            (false, { ($0.endsLogin, $0.sessionStore, $0.credentials) = (true, store, .kept) }),
            (false, { ($0.endsLogin, $0.credentials) = (true, .sessionToken(user: "alice", .fixed("given"))) }),
        ]
        for (endsIt, change) in changes {
            try await withExchange { exchange in
                exchange.answer(path: "/v1.1/logout") { _ in ScriptedAnswer(body: "{}") }
                let service = try Fixtures.service(port: exchange.port, change)
                try await service.connect()
                await service.disconnect()
                #expect(exchange.methods.last == "session.end")
                let logout = exchange.requests.first { $0.path == "/v1.1/logout" }
                #expect(logout?.headers["Authorization"] == (endsIt ? ["Bearer T"] : nil))
                await service.disconnect()
                #expect(exchange.requests.count { $0.path == "/v1.1/logout" } == (endsIt ? 1 : 0))
            }
        }
        #expect(try store.look() == .login(device: "d1", user: "u1"))
    }

    @Test("AUTH-9: A service for one call ends though the exchange does not take its logout")
    func oneCallWithoutLogout() async throws {
        try await withExchange { exchange in
            exchange.answer(path: "/v1.1/logout") { _ in
                ScriptedAnswer(status: 503, body: #"{"error":{"code":"unavailable","message":"No."}}"#)
            }
            let service = try Fixtures.service(port: exchange.port) { $0.endsLogin = true }
            try await service.connect()
            await service.disconnect()
            #expect(await service.connectionState == .notConnected)
            #expect(exchange.requests.count { $0.path == "/v1.1/logout" } == 1)
        }
    }

    @Test("AUTH-4: A login with a user's access token says whose it is")
    func accessToken() async throws {
        try await withExchange { exchange in
            let service = try Fixtures.service(port: exchange.port) {
                $0.credentials = .accessToken(user: "alice", .fixed("A-secret"))
            }
            try await service.connect()
            let body = try JSONDecoder().decode(
                JSONValue.self, from: Data((exchange.requests.first { $0.path == "/v1.1/login" }?.body ?? "").utf8))
            #expect(body["type"] == "AccessToken")
            #expect(body["user_id"] == "alice")
            #expect(body["access_token"] == "A-secret")
            await service.disconnect()
        }
    }
}

private func caseName(_ value: Any) -> String { Mirror(reflecting: value).children.first?.label ?? "\(value)" }
