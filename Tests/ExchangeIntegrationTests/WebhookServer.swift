import Foundation
import JSON
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport

/// A webhook that answers as a test says, on a port that the system chose.
final class WebhookServer: Sendable {
    /// What it does with a request.
    enum Answer: Sendable {
        case status(Int, [String: String] = [:], String = "")
        /// Nothing, ever; the connection stays.
        case silence
        /// Closes the connection without a word.
        case slam
    }

    struct Request: Sendable {
        var path: String
        var headers: [String: String]
        var body: String
        var at: ContinuousClock.Instant

        var json: JSONValue? { try? JSONDecoder().decode(JSONValue.self, from: Data(body.utf8)) }
    }

    private struct State {
        var requests: [Request] = []
        var answer: @Sendable (Request, Int) -> Answer
    }

    private let state: Mutex<State>
    private let channel: Mutex<(any Channel)?> = Mutex(nil)
    let port: Int

    /// - Parameter answer: Told the request and how many have come, this one included.
    init(port: Int = 0, answer: @escaping @Sendable (Request, Int) -> Answer) async throws {
        let state = Mutex(State(answer: answer))
        let box = Box()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
                    try channel.pipeline.syncOperations.addHandler(Handler(box))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        self.state = state
        self.port = channel.localAddress?.port ?? 0
        self.channel.withLock { $0 = channel }
        box.server.withLock { $0 = self }
    }

    var url: String { "http://127.0.0.1:\(port)" }
    var requests: [Request] { state.withLock { $0.requests } }

    /// Waits until so many requests have come in all.
    func wait(for count: Int) async throws { try await until { requests.count >= count } }

    func stop() async { try? await channel.withLock { $0 }?.close() }

    private func take(_ request: Request) -> Answer {
        state.withLock { state in
            state.requests.append(request)
            return state.answer(request, state.requests.count)
        }
    }

    /// Known to the handlers before it is there.
    private final class Box: Sendable {
        let server = Mutex<WebhookServer?>(nil)
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let box: Box
        private var head: HTTPRequestHead?
        private var body = ""

        init(_ box: Box) { self.box = box }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): (self.head, body) = (head, "")
            case .body(let bytes): body += String(buffer: bytes)
            case .end:
                guard let head, let server = box.server.withLock({ $0 }) else { return }
                let headers = Dictionary(head.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
                switch server.take(Request(path: head.uri, headers: headers, body: body, at: .now)) {
                case .silence: break
                case .slam: context.close(promise: nil)
                case .status(let status, let headers, let text): answer(status, headers, text, context)
                }
            }
        }

        private func answer(
            _ status: Int, _ headers: [String: String], _ text: String, _ context: ChannelHandlerContext
        ) {
            var lines = HTTPHeaders(headers.map { ($0.key, $0.value) })
            lines.add(name: "content-length", value: "\(text.utf8.count)")
            let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: status), headers: lines)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
