import HTTPTransport
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TLS

/// A server of this module on loopback: it answers GET with the path, and opens WebSockets at `/echo` that send back what
/// they are sent, but for a few words that are orders.
final class EchoServer: Sendable {
    static let group = MultiThreadedEventLoopGroup.singleton

    let port: Int
    private let channel: any Channel
    private let service: NIOLoopBound<EchoService>

    private init(port: Int, channel: any Channel, service: NIOLoopBound<EchoService>) {
        self.port = port
        self.channel = channel
        self.service = service
    }

    static func start(tls: TLSContext? = nil) async throws -> EchoServer {
        let loop = group.next()
        let (service, listener) = try await loop.submit {
            let service = EchoService()
            let listener = HTTPListener(
                service, tls: tls, budget: InboundBudget(limit: 1 << 20),
                bounds: StrangerBounds(bodyBytes: 1_000, messageBytes: 4 << 20), messageBytes: 4 << 20)
            return (NIOLoopBound(service, eventLoop: loop), NIOLoopBound(listener, eventLoop: loop))
        }.get()
        let address = try ListenAddress(host: "127.0.0.1", port: 0).resolve()
        let channel = try await HTTPListener.listen(at: address, with: listener, on: loop)
        guard let port = channel.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        return EchoServer(port: port, channel: channel, service: service)
    }

    /// Clients that were dropped because they do not read.
    func dropped() async throws -> Int {
        try await channel.eventLoop.submit { [service] in service.value.dropped }.get()
    }

    /// The codes with which clients have closed.
    func closed() async throws -> [UInt16?] {
        try await channel.eventLoop.submit { [service] in service.value.closed }.get()
    }

    func stop() async { try? await channel.close() }
}

/// Runs `work` with a server, and ends the server.
func withEchoServer(tls: TLSContext? = nil, _ work: (EchoServer) async throws -> Void) async throws {
    let server = try await EchoServer.start(tls: tls)
    do { try await work(server) } catch {
        await server.stop()
        throw error
    }
    await server.stop()
}

private final class EchoService: HTTPService, ConnectionService, OutboundWatch {
    private static let settings = WebSocket.Settings(.server, messageBytes: 4 << 20)

    private(set) var dropped = 0
    private(set) var closed: [UInt16?] = []
    private var newest: (any Channel)?

    func accept(_ channel: any Channel) -> any ConnectionService { self }
    func failedToAccept(_ error: IOError) {}
    func countShed() {}
    func note(_ bytes: Int, of meter: OutboundMeter) {}
    func forget(_ meter: OutboundMeter) {}
    func countDropped() { dropped += 1 }

    var outbound: any OutboundWatch { self }

    func bodyLimit(of head: HTTPRequestHead) -> Int { 1_000 }

    func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
        reply(HTTPAnswer(status: .notFound, contentType: "text/plain", body: Array(request.path.utf8) + request.body))
    }

    func abandon(_ request: HTTPRequest.Number) {}

    func refusal(
        _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
    ) -> HTTPAnswer {
        HTTPAnswer(status: .payloadTooLarge, contentType: "text/plain", body: Array("at most \(limit)".utf8))
    }

    func opensWebSocket(_ head: HTTPRequestHead, on channel: any Channel) -> Bool {
        newest = channel
        return head.uri == "/echo"
    }

    func webSocketHeaders(for head: HTTPRequestHead) -> HTTPHeaders {
        let offered = head.headers[canonicalForm: "Sec-WebSocket-Protocol"].map(String.init)
        if offered == ["rude"] { return ["Sec-WebSocket-Protocol": "another"] }
        return offered.contains("audio.v1") ? ["Sec-WebSocket-Protocol": "audio.v1"] : [:]
    }

    func makeWebSocket(_ meter: InboundMeter) -> WebSocket {
        var socket: WebSocket?
        return WebSocket(Self.settings, meter: meter) { [self, newest] event in
            switch event {
            case .opened(let opened):
                socket = opened
                opened.admit()
            case .text(let bytes):
                switch String(decoding: bytes, as: UTF8.self) {
                case "pause": socket?.pause()
                case "vanish": newest?.close(promise: nil)
                case "end": newest?.close(mode: .output, promise: nil)
                case "close": socket?.close(4_001, "as was asked for")
                case "flood": for _ in 0..<512 { socket?.send(binary: [UInt8](repeating: 1, count: 65_536)) }
                default: socket?.send(bytes)
                }
            case .binary(let bytes): socket?.send(binary: bytes)
            case .closed(let code):
                closed.append(code)
                socket = nil
            case .failed: socket = nil
            case .pong, .lifeSign, .refused, .fault, .silent: break
            }
        }
    }
}

/// A server that reads the head of a request and then does as it is told, byte by byte.
enum RawServer {
    /// Runs `work` with a server's port.
    ///
    /// - Parameter answer: What is sent; nil to close the connection, and empty to say nothing.
    static func with(answer: String?, _ work: (Int) async throws -> Void) async throws {
        let channel = try await ServerBootstrap(group: EchoServer.group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(RawHandler(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        do { try await work(channel.localAddress?.port ?? 0) } catch {
            try? await channel.close()
            throw error
        }
        try await channel.close()
    }
}

private final class RawHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answer: String?
    private var head = ""

    init(_ answer: String?) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        head += String(buffer: unwrapInboundIn(data))
        // The first byte of TLS is no request's, and there is nothing to wait for.
        guard head.hasSuffix("\r\n\r\n") || head.utf8.first == 0x16 else { return }
        guard let answer else { return context.close(promise: nil) }
        if !answer.isEmpty { context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil) }
    }
}
