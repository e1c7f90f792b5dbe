import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport

/// A collector of traces that answers each request as a test says, on a port that the system chose.
final class ScriptedCollector: Sendable {
    /// What it does with a request.
    enum Answer: Sendable {
        case status(Int, [String: String] = [:])
        /// Nothing, ever; the connection stays.
        case silence
        /// Closes the connection without a word.
        case slam
    }

    struct Request: Sendable {
        let head: HTTPRequestHead
        let body: [UInt8]
    }

    private struct State {
        var requests: [Request] = []
        var answers: [Answer]
    }

    private let state: Mutex<State>
    private let channel: any Channel
    let port: Int

    /// - Parameter answers: To the first requests, in order; later ones are answered with 200.
    static func start(_ answers: [Answer] = [], port: Int = 0) async throws -> ScriptedCollector {
        let (requests, sink) = AsyncStream.makeStream(of: (Request, @Sendable (Answer) -> Void).self)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
                    try channel.pipeline.syncOperations.addHandler(Handler(sink))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        let collector = ScriptedCollector(channel, answers)
        Task { for await (request, answer) in requests { answer(collector.take(request)) } }
        return collector
    }

    private init(_ channel: any Channel, _ answers: [Answer]) {
        self.channel = channel
        state = Mutex(State(answers: answers))
        port = channel.localAddress?.port ?? 0
    }

    var requests: [Request] { state.withLock { $0.requests } }

    /// Waits until that many requests have come in all.
    func wait(for count: Int) async throws { try await until { requests.count >= count } }

    func stop() async { try? await channel.close() }

    private func take(_ request: Request) -> Answer {
        state.withLock { state in
            state.requests.append(request)
            return state.answers.isEmpty ? .status(200) : state.answers.removeFirst()
        }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let sink: AsyncStream<(Request, @Sendable (Answer) -> Void)>.Continuation
        private var head: HTTPRequestHead?
        private var body: [UInt8] = []

        init(_ sink: AsyncStream<(Request, @Sendable (Answer) -> Void)>.Continuation) { self.sink = sink }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): (self.head, body) = (head, [])
            case .body(let bytes): body += Array(bytes.readableBytesView)
            case .end:
                guard let head else { return }
                let channel = context.channel
                sink.yield((Request(head: head, body: body), { Self.answer($0, on: channel) }))
            }
        }

        private static func answer(_ answer: Answer, on channel: any Channel) {
            switch answer {
            case .silence: break
            case .slam: channel.close(promise: nil)
            case .status(let status, let fields):
                var headers = HTTPHeaders(fields.map { ($0.key, $0.value) })
                headers.add(name: "content-length", value: "0")
                let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: status), headers: headers)
                channel.write(HTTPServerResponsePart.head(head), promise: nil)
                channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
            }
        }
    }
}
