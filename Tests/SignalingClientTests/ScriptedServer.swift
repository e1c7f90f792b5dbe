import Foundation
import HTTPTransport
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import Synchronization
import TLS

/// A request as it reached the server.
struct RecordedRequest: Sendable {
    var method: String
    var path: String
    var headers: HTTPHeaders
    var body: String
}

/// What the server says to a request.
struct ScriptedAnswer: Sendable {
    var status = 200
    var headers: [(String, String)] = [("Trace-Id", "trace-1")]
    var body = "{}"
    /// Close instead of answering.
    var hangsUp = false
}

/// A real HTTP and WebSocket server on loopback that does what a test tells it to.
final class ScriptedServer: Sendable {
    /// How a WebSocket's messages are answered.
    typealias Conversation = @Sendable (_ message: String, _ socket: ScriptedSocket) -> Void

    let port: Int
    private let channel: any Channel
    private let shared: Shared

    /// What the server's threads and the test both touch.
    final class Shared: Sendable {
        let requests = Mutex<[RecordedRequest]>([])
        let sockets = Mutex<[any Channel]>([])
        let answer: @Sendable (RecordedRequest) -> ScriptedAnswer
        let conversation: Conversation?

        init(answer: @escaping @Sendable (RecordedRequest) -> ScriptedAnswer, conversation: Conversation?) {
            self.answer = answer
            self.conversation = conversation
        }
    }

    var requests: [RecordedRequest] { shared.requests.withLock { $0 } }

    private init(port: Int, channel: any Channel, shared: Shared) {
        self.port = port
        self.channel = channel
        self.shared = shared
    }

    static func start(
        on group: any EventLoopGroup, port: Int = 0, tls: TLSContext? = nil, conversation: Conversation? = nil,
        answer: @escaping @Sendable (RecordedRequest) -> ScriptedAnswer
    ) async throws -> ScriptedServer {
        let shared = Shared(answer: answer, conversation: conversation)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    shared.sockets.withLock { $0.append(channel) }
                    if let tls { try channel.pipeline.syncOperations.addTLS(tls) }
                    try configure(channel, shared)
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        guard let port = channel.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        return ScriptedServer(port: port, channel: channel, shared: shared)
    }

    private static func configure(_ channel: any Channel, _ shared: Shared) throws {
        guard shared.conversation != nil else {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
            return try channel.pipeline.syncOperations.addHandler(ScriptedHTTPHandler(shared))
        }
        let upgrader = NIOTypedWebSocketServerUpgrader<Void>(
            shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ScriptedSocketHandler(shared))
                }
            })
        _ = try channel.pipeline.syncOperations.configureUpgradableHTTPServerPipeline(
            configuration: .init(
                upgradeConfiguration: NIOTypedHTTPServerUpgradeConfiguration(
                    upgraders: [upgrader],
                    notUpgradingCompletionHandler: { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(ScriptedHTTPHandler(shared))
                        }
                    })))
    }

    /// Drops every connection without a word, as a killed process does.
    func dropConnections() {
        for socket in shared.sockets.withLock({ $0 }) { socket.close(promise: nil) }
    }

    func stop() async {
        try? await channel.close()
        dropConnections()
    }
}

private final class ScriptedHTTPHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let shared: ScriptedServer.Shared
    private var head: HTTPRequestHead?
    private var body = ""

    init(_ shared: ScriptedServer.Shared) { self.shared = shared }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = ""
        case .body(let part):
            body += String(buffer: part)
        case .end:
            guard let head else { return }
            let request = RecordedRequest(
                method: head.method.rawValue, path: head.uri, headers: head.headers, body: body)
            shared.requests.withLock { $0.append(request) }
            reply(shared.answer(request), in: context)
        }
    }

    private func reply(_ answer: ScriptedAnswer, in context: ChannelHandlerContext) {
        if answer.hangsUp { return context.close(promise: nil) }
        var headers = HTTPHeaders(answer.headers)
        headers.add(name: "Content-Length", value: "\(answer.body.utf8.count)")
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: answer.body)))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

/// The server's end of one WebSocket.
struct ScriptedSocket: Sendable {
    let channel: any Channel

    func send(_ text: String) { send(.text, ByteBuffer(string: text)) }

    func close(code: UInt16) {
        var data = ByteBuffer()
        data.writeInteger(code)
        send(.connectionClose, data)
    }

    fileprivate func send(_ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        channel.writeAndFlush(WebSocketFrame(fin: true, opcode: opcode, data: data), promise: nil)
    }
}

private final class ScriptedSocketHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let shared: ScriptedServer.Shared

    init(_ shared: ScriptedServer.Shared) { self.shared = shared }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let socket = ScriptedSocket(channel: context.channel)
        switch frame.opcode {
        case .text:
            guard frame.maskKey != nil else { return socket.close(code: 1002) }  // RFC 6455 §5.1
            shared.conversation?(String(buffer: frame.unmaskedData), socket)
        case .ping:
            socket.send(.pong, frame.unmaskedData)
        case .connectionClose:
            socket.send(.connectionClose, frame.unmaskedData)
            context.close(promise: nil)
        default:
            break
        }
    }
}
