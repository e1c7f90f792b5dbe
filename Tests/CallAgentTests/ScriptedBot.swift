import Core
import HTTPTransport
import JSON
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A voice bot's server on loopback that does what a test says: it answers webhooks, and speaks Twilio's words on WebSockets.
final class ScriptedBot: Sendable {
    /// What happens on a WebSocket: a message came, or nil when it is closed.
    typealias Script = @Sendable (JSONValue?, Line) -> Void

    /// The bot's side of a stream. On the loop.
    final class Line {
        fileprivate(set) var socket: WebSocket?
        fileprivate let channel: any Channel
        var stream = ""
        var call = ""
        /// For the script's own use.
        var count = 0

        fileprivate init(_ channel: any Channel) { self.channel = channel }

        func send(_ message: JSONValue) {
            guard let text = try? JSONText(message) else { return }
            socket?.send(text.bytes)
        }

        func say(_ sound: [UInt8]) { say(payload: Base64.text(sound)) }

        func say(payload: String) {
            send(["event": "media", "streamSid": .string(stream), "media": ["payload": .string(payload)]])
        }

        func mark(_ name: String) {
            send(["event": "mark", "streamSid": .string(stream), "mark": ["name": .string(name)]])
        }

        func clear() { send(["event": "clear", "streamSid": .string(stream)]) }
        func sendText(_ text: String) { socket?.send(Array(text.utf8)) }
        func close() { socket?.close(1_000) }
        /// As if the process had been killed.
        func die() { channel.close(promise: nil) }
        func stopReading() { socket?.pause() }
    }

    let port: Int
    private let channel: any Channel
    private let log: Log

    /// - Parameters:
    ///   - markup: What the webhook answers; `PORT` in it is the port.
    ///   - respond: What it answers requests, instead of the markup.
    ///   - script: What the bot does; every message, and nil for the connection's end.
    init(
        markup: String = "", status: HTTPResponseStatus = .ok, on group: MultiThreadedEventLoopGroup,
        respond: (@Sendable (HTTPRequest) -> HTTPAnswer)? = nil, _ script: @escaping Script
    ) async throws {
        let log = Log()
        let loop = group.next()
        let listener = try await loop.submit {
            NIOLoopBound(
                HTTPListener(
                    Service(markup, status, log, respond, script), tls: nil, budget: InboundBudget(limit: 1 << 24),
                    bounds: StrangerBounds(bodyBytes: 65_536, messageBytes: 1 << 20), messageBytes: 1 << 20),
                eventLoop: loop)
        }.get()
        let address = try ListenAddress(host: "127.0.0.1", port: 0).resolve()
        channel = try await HTTPListener.listen(at: address, with: listener, on: loop)
        port = channel.localAddress?.port ?? 0
        self.log = log
    }

    /// Messages so far that have this event.
    func messages(_ event: String) -> [JSONValue] {
        log.messages.withLock { $0 }.filter { $0["event"]?.string == event }
    }
    /// Messages so far of this type, as the Realtime API has them.
    func messages(type: String) -> [JSONValue] {
        log.messages.withLock { $0 }.filter { $0["type"]?.string == type }
    }
    /// The headers of each request for a WebSocket so far.
    var openings: [HTTPHeaders] { log.openings.withLock { $0 } }
    /// The webhook's questions so far: body and signature.
    var questions: [(body: String, signature: String?)] { log.questions.withLock { $0 } }

    /// The `traceparent` of each request so far, those for WebSockets included.
    var traces: [String?] { log.traces.withLock { $0 } }

    func stop() async { try? await channel.close() }

    final class Log: Sendable {
        let traces = Mutex<[String?]>([])
        let messages = Mutex<[JSONValue]>([])
        let openings = Mutex<[HTTPHeaders]>([])
        let questions = Mutex<[(body: String, signature: String?)]>([])
    }

    private final class Service: HTTPService, ConnectionService, OutboundWatch {
        private let markup: String
        private let status: HTTPResponseStatus
        private let log: Log
        private let respond: (@Sendable (HTTPRequest) -> HTTPAnswer)?
        private let script: Script
        private var newest: (any Channel)?

        init(
            _ markup: String, _ status: HTTPResponseStatus, _ log: Log,
            _ respond: (@Sendable (HTTPRequest) -> HTTPAnswer)?, _ script: @escaping Script
        ) {
            self.markup = markup
            self.status = status
            self.log = log
            self.respond = respond
            self.script = script
        }

        func accept(_ channel: any Channel) -> any ConnectionService { self }
        func failedToAccept(_ error: IOError) {}
        func countShed() {}
        func note(_ bytes: Int, of meter: OutboundMeter) {}
        func forget(_ meter: OutboundMeter) {}
        func countDropped() {}
        var outbound: any OutboundWatch { self }
        func bodyLimit(of head: HTTPRequestHead) -> Int { 65_536 }
        func abandon(_ request: HTTPRequest.Number) {}

        func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
            log.traces.withLock { $0.append(request.head.headers.first(name: "traceparent")) }
            log.questions.withLock {
                $0.append(
                    (
                        String(decoding: request.body, as: UTF8.self),
                        request.head.headers.first(name: "X-Twilio-Signature")
                    ))
            }
            if let respond { return reply(respond(request)) }
            let text = markup.replacing("PORT", with: "\(channel.localAddress?.port ?? 0)")
            reply(
                HTTPAnswer(
                    status: status, headers: status == .found ? ["Location": "/elsewhere"] : [:],
                    contentType: "text/xml",
                    body: Array(text.utf8)))
        }

        func refusal(
            _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
        ) -> HTTPAnswer {
            HTTPAnswer(status: .payloadTooLarge, body: [])
        }

        func opensWebSocket(_ head: HTTPRequestHead, on channel: any Channel) -> Bool {
            log.traces.withLock { $0.append(head.headers.first(name: "traceparent")) }
            log.openings.withLock { $0.append(head.headers) }
            newest = channel
            return true
        }

        func webSocketHeaders(for head: HTTPRequestHead) -> HTTPHeaders { [:] }

        func makeWebSocket(_ meter: InboundMeter) -> WebSocket {
            guard let newest else { preconditionFailure("a WebSocket was opened without a connection") }
            let line = Line(newest)
            return WebSocket(.init(.server, messageBytes: 1 << 20), meter: meter) { [log, script] event in
                switch event {
                case .opened(let socket):
                    line.socket = socket
                    socket.admit()
                case .text(let bytes):
                    guard let message = JSONValue(plain: bytes, nesting: 16) else { return }
                    if let start = message["start"] {
                        line.stream = start["streamSid"]?.string ?? ""
                        line.call = start["callSid"]?.string ?? ""
                    }
                    log.messages.withLock { $0.append(message) }
                    script(message, line)
                case .closed, .failed:
                    script(nil, line)
                    line.socket = nil
                case .binary, .pong, .lifeSign, .refused, .fault, .silent: break
                }
            }
        }
    }
}

/// A bot that speaks AudioSocket: it says back what it hears, and hangs up on `#`. It can also be silent from the beginning.
final class AudioSocketBot: Sendable {
    let port: Int
    private let channel: any Channel

    init(isMute: Bool = false, on group: MultiThreadedEventLoopGroup) async throws {
        channel = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if !isMute { try channel.pipeline.syncOperations.addHandler(Echo()) }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    func stop() async { try? await channel.close() }

    private final class Echo: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private var waiting = ByteBuffer()

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            waiting.writeImmutableBuffer(unwrapInboundIn(data))
            while let kind = waiting.getInteger(at: waiting.readerIndex, as: UInt8.self),
                let length = waiting.getInteger(at: waiting.readerIndex + 1, as: UInt16.self),
                let frame = waiting.readSlice(length: 3 + Int(length))
            {
                if (0x10...0x18).contains(kind) { context.writeAndFlush(wrapOutboundOut(frame), promise: nil) }
                if kind == 0x03 { context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [0, 0, 0])), promise: nil) }
            }
        }
    }
}
