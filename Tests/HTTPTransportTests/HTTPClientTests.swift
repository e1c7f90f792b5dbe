import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import HTTPTransport

/// The HTTP client against a server on loopback.
@Suite(.timeLimit(.minutes(1))) struct HTTPClientTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    private func client(
        time: TimeAmount = .seconds(20), silence: TimeAmount? = nil, acceptsPart: Bool = false
    ) -> HTTPClient {
        HTTPClient(
            trust: .system,
            within: .init(bodyBytes: 100, time: time, silence: silence, acceptsPart: acceptsPart),
            keeping: .init(connections: 16), on: MultiThreadedEventLoopGroup.singleton.next())
    }

    private func request(
        _ method: HTTPMethod = .GET, port: Int, host: String = "127.0.0.1"
    ) throws -> HTTPFetch.Request {
        HTTPFetch.Request(method, try HTTPEndpoint("http://\(host):\(port)"), target: "/x")
    }

    private func failure(
        of client: HTTPClient, _ request: HTTPFetch.Request
    ) async throws -> TransportFailure.Kind? {
        do {
            _ = try await client.send(request)
            return nil
        } catch {
            return TransportFailure(error, to: request.endpoint).kind
        }
    }

    @Test("Requests one after the other share a connection, also to a name")
    func reuse() async throws {
        try await KeptServer.with({ _, _ in .send(Self.ok) }) { server in
            let client = client()
            for _ in 0..<3 {
                let answer = try await client.send(request(port: server.port, host: "localhost"))
                #expect(answer.status == 200 && answer.body == Array("ok".utf8) && answer.isWhole)
            }
            #expect(server.requests == [3])
            await client.shutDown()
        }
    }

    @Test("Parallel requests have a connection each, and those are kept")
    func parallel() async throws {
        try await KeptServer.with({ _, _ in .send(Self.ok) }) { server in
            let client = client()
            for _ in 0..<2 {
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<16 { group.addTask { try await client.send(request(port: server.port)).status } }
                    for try await status in group { #expect(status == 200) }
                }
            }
            #expect(server.requests.reduce(0, +) == 32 && server.requests.count <= 16)
            await client.shutDown()
        }
    }

    @Test("A request that finds its kept connection closed is sent once more on a new one, if it may be")
    func closedBeforeReuse() async throws {
        try await KeptServer.with({ _, count in count == 2 ? .close : .send(Self.ok) }) { server in
            let client = client()
            for _ in 0..<2 { #expect(try await client.send(request(port: server.port)).status == 200) }
            #expect(server.requests == [2, 1])
            let port = server.port
            let kind = try await failure(of: client, try request(.POST, port: port))
            #expect(kind == .closed)
            var repeatable = try request(.POST, port: port)
            #expect(try await client.send(repeatable).status == 200)
            repeatable.isRepeatable = true
            #expect(try await client.send(repeatable).status == 200)
            await client.shutDown()
        }
    }

    @Test("A server that closes a new connection without an answer is not asked again")
    func closes() async throws {
        try await KeptServer.with({ _, _ in .close }) { server in
            let (client, port) = (client(), server.port)
            let kind = try await failure(of: client, try request(port: port))
            #expect(kind == .closed)
            #expect(server.requests == [1])
            await client.shutDown()
        }
    }

    @Test("A redirect is an answer, and is not followed")
    func redirect() async throws {
        let moved = "HTTP/1.1 307 Moved\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n"
        try await KeptServer.with({ _, _ in .send(moved) }) { server in
            let client = client()
            let answer = try await client.send(request(port: server.port))
            #expect(answer.status == 307 && answer.headers["Location"] == ["/y"])
            #expect(server.requests == [1])
            await client.shutDown()
        }
    }

    @Test("A server that does not answer is given up by silence and by the whole time")
    func silent() async throws {
        try await KeptServer.with({ _, _ in .send("") }) { server in
            let port = server.port
            for client in [client(silence: .milliseconds(50)), client(time: .milliseconds(50))] {
                let error = await #expect(throws: HTTPFetch.Failure.self) {
                    try await client.send(request(port: port))
                }
                #expect(error == .tooLate)
                await client.shutDown()
            }
            try await until { server.open == 0 }
        }
    }

    @Test("An answer whose body does not come counts where a part is enough")
    func part() async throws {
        try await KeptServer.with({ _, _ in .send("HTTP/1.1 410 Gone\r\nContent-Length: 9\r\n\r\n{") }) { server in
            let client = client(time: .milliseconds(300), acceptsPart: true)
            let answer = try await client.send(request(port: server.port))
            #expect(answer.status == 410 && !answer.isWhole)
            try await until { server.open == 0 }
            await client.shutDown()
        }
    }

    @Test("A task that is cancelled closes its connection")
    func cancelled() async throws {
        try await KeptServer.with({ _, _ in .send("") }) { server in
            let (client, port) = (client(), server.port)
            let task = Task { try await client.send(request(port: port)) }
            try await until { server.requests == [1] }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await until { server.open == 0 }
            #expect(server.requests == [1], "it is not sent again")
            await client.shutDown()
        }
    }

    @Test("Shutting down closes kept connections, fails requests, and refuses later ones")
    func shutDown() async throws {
        try await KeptServer.with({ connection, _ in .send(connection == 0 ? Self.ok : "") }) { server in
            let (client, port) = (client(), server.port)
            async let first = client.send(request(port: port))
            #expect(try await first.status == 200)
            let waiting = Task { [client] in
                var post = try request(.POST, port: port, host: "localhost")
                post.isRepeatable = true
                return try await client.send(post)
            }
            try await until { server.requests == [1, 1] }
            await client.shutDown()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            await #expect(throws: CancellationError.self) { try await client.send(request(port: port)) }
            try await until { server.open == 0 }
        }
    }

    @Test("A closed port and an unknown name are distinguished from silence")
    func nobody() async throws {
        let client = client()
        let kind = try await failure(of: client, try request(port: 1))
        #expect(kind == .noServer)
        let unknown = try request(port: 80, host: "nobody.invalid")
        do {
            _ = try await client.send(unknown)
            Issue.record("the name is known")
        } catch {
            #expect("\(TransportFailure(error, to: unknown.endpoint))".contains("is not known"))
        }
        await client.shutDown()
    }
}

/// A server that answers each request of each connection as a test says.
private final class KeptServer: Sendable {
    enum Action: Sendable {
        /// Empty to say nothing.
        case send(String)
        case close
    }

    private struct State {
        var requests: [Int] = []
        var open = 0
    }

    private let state = Mutex(State())
    private let channel = Mutex<(any Channel)?>(nil)
    private let action: @Sendable (_ connection: Int, _ count: Int) -> Action

    private init(_ action: @escaping @Sendable (Int, Int) -> Action) { self.action = action }

    /// How many requests came on each connection.
    var requests: [Int] { state.withLock { $0.requests.filter { $0 > 0 } } }
    /// How many connections are open.
    var open: Int { state.withLock { $0.open } }
    var port: Int { channel.withLock { $0?.localAddress?.port ?? 0 } }

    /// - Parameter action: Gets the connection's number, from 0, and that of its request, from 1.
    static func with(
        _ action: @escaping @Sendable (Int, Int) -> Action, _ work: (KeptServer) async throws -> Void
    ) async throws {
        let server = KeptServer(action)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(server))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        server.channel.withLock { $0 = channel }
        do { try await work(server) } catch {
            try? await channel.close()
            throw error
        }
        try await channel.close()
    }

    private func accept() -> Int {
        state.withLock { state in
            state.requests.append(0)
            state.open += 1
            return state.requests.count - 1
        }
    }

    private func take(_ connection: Int) -> Action {
        let count = state.withLock { state in
            state.requests[connection] += 1
            return state.requests[connection]
        }
        return action(connection, count)
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let server: KeptServer
        private var number = 0
        private var text = ""

        init(_ server: KeptServer) { self.server = server }

        func channelActive(context: ChannelHandlerContext) { number = server.accept() }
        func channelInactive(context: ChannelHandlerContext) { server.state.withLock { $0.open -= 1 } }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            text += String(buffer: unwrapInboundIn(data))
            guard text.hasSuffix("\r\n\r\n") else { return }
            text = ""
            switch server.take(number) {
            case .close: context.close(promise: nil)
            case .send(let answer):
                if !answer.isEmpty { context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil) }
            }
        }
    }
}
