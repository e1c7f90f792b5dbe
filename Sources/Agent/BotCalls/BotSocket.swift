internal import BotWire
internal import struct Core.TokenBucket
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A connection with a bot, of either transport. On its event loop.
protocol BotSocket: AnyObject {
    func send(_ message: WireMessage)
    func pause()
    func resume()
    /// Bytes that wait for the bot to read them.
    var waitingBytes: Int { get }
    /// Closes the connection once everything is sent.
    func close()
    /// Closes it at once; no event follows.
    func abandon()
}

/// What happens to a connection. ``closed(failure:)`` comes once, and last.
enum BotSocketEvent {
    case opened(any BotSocket)
    case message(WireMessage)
    case closed(failure: String?)
}

/// A WebSocket.
final class WebBotSocket: BotSocket {
    private var socket: WebSocket?
    private var isOpen = false

    /// Connects. Events come on the loop, also that it could not be connected.
    ///
    /// - Parameter headers: Those of the request that opens it; they may hold secrets.
    init(
        _ endpoint: HTTPEndpoint, at address: SocketAddress, subprotocols: [String], headers: [(String, String)],
        trace: String? = nil,
        trust: TLSTrust, on loop: any EventLoop,
        _ tell: @escaping (BotSocketEvent) -> Void
    ) {
        let settings = WebSocket.Settings(
            .client, messageBytes: WireLimits.messageBytes, keepalive: .seconds(20),
            frameRate: TokenBucket.Rate(
                burst: WireLimits.messages, perSecond: Double(WireLimits.messagesPerSecond)),
            outboundBytes: WireLimits.outboundBytesAtMost)
        let socket = WebSocket(settings) { [weak self] event in
            switch event {
            case .opened:
                guard let self else { return }
                isOpen = true
                tell(.opened(self))
            case .text(let bytes): tell(.message(.text(bytes)))
            case .binary(let bytes): tell(.message(.binary(bytes)))
            case .closed(let code): tell(.closed(failure: self?.failure(code)))
            case .failed(let error): tell(.closed(failure: TransportFailure(error, to: endpoint).description))
            case .silent: tell(.closed(failure: "the bot does not answer any more"))
            case .pong, .lifeSign, .refused, .fault: break
            }
        }
        self.socket = socket
        var headers = HTTPHeaders(headers)
        if let trace { headers.add(name: "traceparent", value: trace) }
        let destination = WebSocket.Destination(
            endpoint, headers: headers, subprotocols: subprotocols, trust: trust, openingTime: nil, address: address)
        WebSocket.connect(socket, to: destination, on: loop).assumeIsolated().whenFailure { error in
            tell(.closed(failure: TransportFailure(error, to: endpoint).description))
        }
    }

    private func failure(_ code: UInt16?) -> String? {
        switch code {
        // It is done, or its server stops.
        case 1_000, 1_001: nil
        case nil:
            socket?.hasSeenClose == false ? "the bot's connection broke off without a close frame" : nil
        case let code?: "the bot has closed the WebSocket with the code \(code)"
        }
    }

    func send(_ message: WireMessage) {
        switch message {
        case .text(let bytes): socket?.send(bytes)
        case .binary(let bytes): socket?.send(binary: bytes)
        }
    }

    func pause() { socket?.pause() }
    func resume() { socket?.resume() }
    var waitingBytes: Int { socket?.waitingBytes ?? 0 }

    func close() {
        // A socket that is not open yet needs no close handshake, and must not be opened any more.
        if isOpen { socket?.close(1_000) } else { abandon() }
    }

    func abandon() {
        socket?.abandon()
        socket = nil
    }
}

/// A TCP connection.
final class StreamBotSocket: BotSocket {
    private let handler: Handler

    init(
        _ place: String, at address: SocketAddress, on loop: any EventLoop,
        _ tell: @escaping (BotSocketEvent) -> Void
    ) {
        handler = Handler(tell)
        handler.owner = self
        let handler = NIOLoopBound(handler, eventLoop: loop)
        let limit = WireLimits.outboundBytesAtMost
        ClientBootstrap(group: loop)
            .connectTimeout(.seconds(5))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(
                .writeBufferWaterMark, value: ChannelOptions.Types.WriteBufferWaterMark(low: limit / 4, high: limit)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(handler.value)
                }
            }
            .connect(to: address)
            .assumeIsolated()
            .whenFailure { error in handler.value.fail("cannot connect to \(place): \(error)") }
    }

    func send(_ message: WireMessage) { handler.send(message.bytes) }
    func pause() { handler.setReading(false) }
    func resume() { handler.setReading(true) }
    var waitingBytes: Int { handler.waitingBytes }
    func close() { handler.close() }
    func abandon() { handler.abandon() }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        weak var owner: StreamBotSocket?
        private var tell: ((BotSocketEvent) -> Void)?
        private var context: ChannelHandlerContext?
        private var isAbandoned = false

        init(_ tell: @escaping (BotSocketEvent) -> Void) { self.tell = tell }

        func handlerAdded(context: ChannelHandlerContext) { self.context = context }
        func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

        func channelActive(context: ChannelHandlerContext) {
            guard !isAbandoned, let owner else { return context.close(promise: nil) }
            tell?(.opened(owner))
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            tell?(.message(.binary(Array(unwrapInboundIn(data).readableBytesView))))
        }

        func channelInactive(context: ChannelHandlerContext) { finish(nil) }

        func channelWritabilityChanged(context: ChannelHandlerContext) {
            guard !context.channel.isWritable else { return }
            fail("more than \(WireLimits.outboundBytesAtMost) bytes wait for a bot that does not read")
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            fail("the connection has failed: \(error)")
        }

        func fail(_ why: String) {
            finish(why)
            context?.close(promise: nil)
        }

        private func finish(_ failure: String?) {
            let report = tell
            tell = nil
            report?(.closed(failure: failure))
        }

        func send(_ bytes: [UInt8]) {
            guard let context else { return }
            context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
        }

        func setReading(_ isReading: Bool) {
            try? context?.channel.syncOptions?.setOption(.autoRead, value: isReading)
        }

        var waitingBytes: Int {
            let bytes = try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
            return bytes ?? 0
        }

        func close() {
            guard let context else { return }
            // What was written goes out first.
            let channel = context.channel
            let written = context.eventLoop.makePromise(of: Void.self)
            written.futureResult.whenComplete { _ in channel.close(promise: nil) }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
            // A bot that reads nothing keeps nothing open.
            context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
        }

        func abandon() {
            tell = nil
            isAbandoned = true
            context?.close(promise: nil)
        }
    }
}
