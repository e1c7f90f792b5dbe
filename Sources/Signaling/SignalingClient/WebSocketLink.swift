internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import NIOWebSocket
internal import SignalWire

/// One WebSocket to the exchange: whole text messages in and out, pings answered, closing done properly.
///
/// Lives on its event loop; what happens is told there, through `onSignal`, until `abandon`.
final class WebSocketLink: ChannelInboundHandler {
    /// Bytes of a message that is read to its end. One that is longer than ``SignalBounds/delivery`` allows is passed over
    /// then, and the next ones are heard: only past this is the connection given up.
    private static let readBytes = 16 * SignalLimits.deliveredBytes

    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    /// What happens to a link.
    enum Signal {
        case text([UInt8])
        case pong
        /// Something else came, a ping for instance: a sign of life.
        case lifeSign
        /// Told once; nothing follows.
        case closed(code: UInt16?)
        case failed(any Error)
    }

    private var onSignal: ((Signal) -> Void)?
    /// The socket, from before it is connected: an attempt given up half-way closes it too.
    private var channel: (any Channel)?
    private var isAbandoned = false
    private var context: ChannelHandlerContext?
    private var closeCode: UInt16?
    private var hasSentClose = false

    init(onSignal: @escaping (Signal) -> Void) { self.onSignal = onSignal }

    /// Sends one message. The mask comes from the system's random generator (RFC 6455 §5.3).
    func send(_ message: [UInt8]) {
        guard let context, !hasSentClose else { return }
        write(.text, context.channel.allocator.buffer(bytes: message), in: context)
    }

    /// Asks for a sign of life.
    func ping() {
        guard let context, !hasSentClose else { return }
        write(.ping, ByteBuffer(), in: context)
    }

    /// Closes properly: the peer's answer comes as `closed`.
    func close(code: UInt16) {
        guard let context, !hasSentClose else { return }
        hasSentClose = true
        var data = context.channel.allocator.buffer(capacity: 2)
        data.writeInteger(code)
        write(.connectionClose, data, in: context)
    }

    /// Drops the socket; nothing is told any more.
    func abandon() {
        onSignal = nil
        isAbandoned = true
        channel?.close(promise: nil)
    }

    private func attach(to channel: any Channel) throws {
        guard !isAbandoned else { throw ChannelError.ioOnClosedChannel }
        self.channel = channel
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text:
            onSignal?(.text(Array(buffer: frame.unmaskedData)))
        case .ping:
            write(.pong, frame.unmaskedData, in: context)
            onSignal?(.lifeSign)
        case .pong:
            onSignal?(.pong)
        case .connectionClose:
            var data = frame.unmaskedData
            closeCode = data.readInteger()
            if !hasSentClose { close(code: closeCode ?? 1000) }
            context.close(promise: nil)
        case .binary, .continuation:
            onSignal?(.lifeSign)  // Not ours; the aggregator has put fragments together already.
        default:
            break  // Opcodes that RFC 6455 keeps for later; NIO's decoder refuses them.
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(.closed(code: closeCode))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A peer that closes without TLS's goodbye has closed; which is all that matters here.
        if case .uncleanShutdown? = error as? NIOSSLError { return context.close(promise: nil) }
        finish(.failed(error))
        context.close(promise: nil)
    }

    private func finish(_ signal: Signal) {
        let tell = onSignal
        onSignal = nil
        tell?(signal)
    }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer, in context: ChannelHandlerContext) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}

// MARK: Opening

extension WebSocketLink {
    /// The peer answered the upgrade with something else.
    struct NotUpgraded: Error {
        /// The HTTP status of its answer, if it sent one.
        let status: Int?
    }

    /// Connects and upgrades. Must be called on `loop`; `link` hears what happens from then on.
    static func open(
        _ link: WebSocketLink, to endpoint: Endpoint, userAgent: String, trust: TLSTrust, on loop: any EventLoop
    ) -> EventLoopFuture<Void> {
        let link = NIOLoopBound(link, eventLoop: loop)
        let watcher = NIOLoopBound(StatusWatcher(), eventLoop: loop)
        let upgrader = NIOTypedWebSocketClientUpgrader<Bool>(
            maxFrameSize: readBytes,
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    let aggregator = NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 1, maxAccumulatedFrameCount: 64,
                        maxAccumulatedFrameSize: readBytes)
                    try channel.pipeline.syncOperations.addHandlers([aggregator, link.value])
                    return true
                }
            })
        let upgrade = NIOTypedHTTPClientUpgradeConfiguration(
            upgradeRequestHead: request(to: endpoint, userAgent: userAgent), upgraders: [upgrader],
            notUpgradingCompletionHandler: { channel in channel.eventLoop.makeSucceededFuture(false) })

        let opened = loop.makePromise(of: Void.self)
        ClientBootstrap(group: loop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connectTimeout(.seconds(5))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try link.value.attach(to: channel)
                    let pipeline = channel.pipeline.syncOperations
                    if endpoint.isSecure {
                        let name = endpoint.isAddress ? nil : endpoint.host
                        try pipeline.addHandler(NIOSSLClientHandler(context: trust.context(), serverHostname: name))
                    }
                    let result = try pipeline.configureUpgradableHTTPClientPipeline(
                        configuration: .init(upgradeConfiguration: upgrade))
                    let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                    try pipeline.addHandler(watcher.value, position: .after(decoder))
                    result.flatMapThrowing { isUpgraded in
                        guard !isUpgraded else { return }
                        channel.close(promise: nil)
                        throw NotUpgraded(status: watcher.value.status)
                    }.cascade(to: opened)
                }
            }
            .connect(host: endpoint.host, port: endpoint.port)
            .cascadeFailure(to: opened)
        return opened.futureResult
    }

    private static func request(to endpoint: Endpoint, userAgent: String) -> HTTPRequestHead {
        let path = endpoint.path.isEmpty ? "/" : endpoint.path
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path)
        head.headers.add(name: "Host", value: endpoint.authority)
        head.headers.add(name: "User-Agent", value: userAgent)
        return head
    }
}

/// Notes the status of the answer to the upgrade, for the error message, and passes everything on.
private final class StatusWatcher: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private(set) var status: Int?
    private var hasSeenHead = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Only the first thing through is looked at: after an upgrade what passes is no longer HTTP.
        if !hasSeenHead {
            hasSeenHead = true
            if case .head(let head) = unwrapInboundIn(data) { status = Int(head.status.code) }
        }
        context.fireChannelRead(data)
    }
}
