import ExchangeCore
import ExchangeServer
import Logging
import NIOPosix
import SignalSupport
import SignalWire
import Synchronization

/// Everything that was logged, as text.
final class LogCapture: Sendable {
    private let lines = Mutex<[String]>([])

    var text: String { lines.withLock { $0.joined(separator: "\n") } }
    func append(_ line: String) { lines.withLock { $0.append(line) } }

    func makeLogger() -> Logger {
        var logger = Logger(label: "test") { _ in Handler(capture: self) }
        logger.logLevel = .trace
        return logger
    }

    private struct Handler: LogHandler {
        let capture: LogCapture
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { capture.append("\(event.message) \(event.metadata ?? [:])") }
    }
}

/// What the tests' exchanges know.
enum ServerFixture {
    /// base64 of `app:app-secret`.
    static let basic = "Basic YXBwOmFwcC1zZWNyZXQ="
    static let password = "correct horse battery"

    static func configuration() -> ExchangeConfiguration {
        var configuration = ExchangeConfiguration()
        configuration.port = 0
        configuration.apps = [RegisteredApp(key: "app", secret: SecretDigest(of: "app-secret"))]
        configuration.users = [
            Account(
                id: "alice", publicIDs: ["alice@localhost"], password: .digest(SecretDigest(of: password)),
                mediaTokens: [SecretDigest(of: "media-token-of-alice")], email: "alice@example.org"),
            Account(
                id: "bob", publicIDs: ["bob@localhost"], mediaTokens: [SecretDigest(of: "media-token-of-bob")]),
        ]
        return configuration
    }

    /// Runs `body` beside an exchange, which is stopped afterwards.
    static func withServer(
        _ configuration: ExchangeConfiguration = configuration(), log: LogCapture = LogCapture(),
        _ body: (ExchangeServer) async throws -> Void
    ) async throws {
        let server = try await ExchangeServer.start(
            configuration, on: MultiThreadedEventLoopGroup.singleton, logger: log.makeLogger())
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// Logs in with a media token; answers with the access token.
    static func token(of user: UserID, port: Int) async throws -> String {
        let client = try await RawClient.connect(port: port)
        defer { client.close() }
        let body = try SignalCoding.encode(LoginRequest(mediaToken: Redacted("media-token-of-\(user)")))
        let response = await client.request(
            "POST", "/v1.1/login", ["Authorization": basic], body: String(decoding: body, as: UTF8.self))
        return try SignalCoding.decode(LoginResponse.self, from: Array(response.body.utf8)).token.secret
    }

    /// A device that is logged in and registered.
    static func device(_ id: DeviceID, of user: UserID, port: Int) async throws -> RPCClient {
        let token = try await token(of: user, port: port)
        let client = try await RPCClient(RawClient.connect(port: port))
        let device = DeviceDescription(id: id, name: id.text, capabilities: ["audio"])
        _ = try await client.call(SessionStart(token: Redacted(token), device: device))
        _ = try await client.call(DeviceRegister(device: device))
        return client
    }
}

/// Requests and events over a WebSocket.
final class RPCClient {
    let raw: RawClient
    private var lastID: Int64 = 0
    private var waiting: [ExchangeEvent] = []

    struct Unexpected: Error { var what: String }

    init(_ raw: RawClient) async throws {
        self.raw = raw
        let status = await raw.upgrade()
        guard status == 101 else { throw Unexpected(what: "status \(status)") }
    }

    /// Sends a request and waits for its answer; events that come before it are kept.
    func call<Method: RPCMethod>(_ params: Method) async throws -> Method.Result {
        lastID += 1
        raw.sendText(String(decoding: try SignalCoding.request(id: .number(lastID), params), as: UTF8.self))
        while true {
            let message = try await message()
            switch message.kind {
            case .result(.number(lastID)): return try message.result(Method.Result.self)
            case .failure(_, let error): throw error
            case .notification: waiting.append(try message.params(NumberedEvent.self).event)
            case .request, .result: throw Unexpected(what: "\(message.kind)")
            }
        }
    }

    /// The next event.
    func event() async throws -> ExchangeEvent {
        if !waiting.isEmpty { return waiting.removeFirst() }
        return try await message().params(NumberedEvent.self).event
    }

    private func message() async throws -> RPCMessage {
        while let frame = await raw.frame() {
            if frame.opcode == 1 { return try RPCMessage(decoding: frame.payload) }
            if frame.opcode == 8 { throw Unexpected(what: "close \(frame.closeCode ?? 0)") }
        }
        throw Unexpected(what: "end of connection")
    }
}
