// HTTPTransport: HTTP/1.1, TLS and WebSockets, at both ends, with all input from the network bounded. It is independent
// of the content: a service answers requests, and the owner of a WebSocket receives its messages.

internal import Glibc
package import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOWebSocket
package import TLS

/// Accepts the connections of a server, and sets up each one's pipeline: first for HTTP, then perhaps for a WebSocket.
///
/// Lives on one event loop, as do all of its connections.
package final class HTTPListener {
    private let service: any HTTPService
    private var tls: TLSContext?
    private let budget: InboundBudget
    private let admitted: InboundBudget?
    private let bounds: StrangerBounds
    private let messageBytes: Int

    /// - Parameters:
    ///   - tls: Nil for plain text.
    ///   - budget: What all strangers may hold together.
    ///   - admitted: What all admitted peers may hold together of requests and messages that are not complete; nil for no
    ///     bound.
    ///   - messageBytes: The most that a frame on a WebSocket may have, as a message in
    ///     ``WebSocket/Settings``.
    package init(
        _ service: any HTTPService, tls: TLSContext?, budget: InboundBudget, admitted: InboundBudget? = nil,
        bounds: StrangerBounds, messageBytes: Int
    ) {
        self.service = service
        self.tls = tls
        self.budget = budget
        self.admitted = admitted
        self.bounds = bounds
        self.messageBytes = messageBytes
    }

    /// Has connections from now on get another certificate. Those that are open keep theirs.
    package func replace(tls: TLSContext) { self.tls = tls }

    /// What one read takes at most, and so what each connection's buffer may keep: most messages are shorter than 2 KiB.
    private static let receiveBuffer = AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2_048, maximum: 8_192)

    /// Begins to listen.
    ///
    /// - Parameter patience: How long a client may leave unacknowledged what it was sent, or take nothing more, before the system ends its
    ///   connection (RFC 5482); nil: as long as TCP has it, some 15 minutes.
    /// - Returns: The listening channel; closing it ends accepting and leaves connections as they are.
    /// - Throws: The system's error; ``ListenAddress/explain(_:)`` makes a helpful error of it.
    package static func listen(
        at address: SocketAddress, with listener: NIOLoopBound<HTTPListener>, patience: Duration? = nil,
        on loop: any EventLoop
    ) async throws -> any Channel {
        var bootstrap = bootstrap(listener, on: loop)
        if let patience {
            let milliseconds = TimeAmount(patience).nanoseconds / 1_000_000
            bootstrap = bootstrap.childChannelOption(userTimeout, value: SocketOptionValue(milliseconds))
        }
        return
            try await bootstrap
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .bind(to: address).get()
    }

    /// TCP_USER_TIMEOUT, in milliseconds (tcp(7)).
    static let userTimeout = ChannelOptions.Types.SocketOption(
        level: .tcp, name: NIOBSDSocket.Option(rawValue: TCP_USER_TIMEOUT))

    /// Begins to accept clients of a socket that listens already, such as a Unix socket.
    ///
    /// - Parameter descriptor: Of the socket; the channel closes it.
    package static func listen(
        on descriptor: CInt, with listener: NIOLoopBound<HTTPListener>, on loop: any EventLoop
    ) async throws -> any Channel {
        try await bootstrap(listener, on: loop).withBoundSocket(descriptor).get()
    }

    private static func bootstrap(
        _ listener: NIOLoopBound<HTTPListener>, on loop: any EventLoop
    ) -> ServerBootstrap {
        ServerBootstrap(group: loop)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptGate(listener.value.service))
                }
            }
            .childChannelOption(.recvAllocator, value: receiveBuffer)
            .childChannelOption(.writeBufferWaterMark, value: OutboundMeter.limit)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try listener.value.configure(channel) }
            }
    }

    /// Sets up a connection that was just accepted, unless there are too many.
    private func configure(_ channel: any Channel) throws {
        let service = try service.accept(channel)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(OutboundMeter(service.outbound))
        let timer = RequestTimer()
        try pipeline.addHandler(timer)
        if let tls { try pipeline.addTLS(tls) }
        let meter = InboundMeter(budget, admitted: admitted, bounds, timer: timer)
        try pipeline.addHandler(meter)

        let parts = NIOLoopBound((self, service, timer, meter), eventLoop: channel.eventLoop)
        let upgrader = NIOTypedWebSocketServerUpgrader<Void>(
            maxFrameSize: messageBytes, enableAutomaticErrorHandling: false,
            shouldUpgrade: { channel, head in
                channel.eventLoop.makeSucceededFuture(parts.value.1.webSocketHeaders(for: head))
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    let (_, service, timer, meter) = parts.value
                    channel.pipeline.syncOperations.removeHandler(timer, promise: nil)
                    try channel.pipeline.syncOperations.addHandler(service.makeWebSocket(meter))
                }
            })
        let upgrade = NIOTypedHTTPServerUpgradeConfiguration<Void>(upgraders: [upgrader]) { channel in
            channel.eventLoop.makeCompletedFuture {
                let (own, service, timer, meter) = parts.value
                let headers = SecurityHeaders(isEncrypted: own.tls != nil)
                try channel.pipeline.syncOperations.addHandler(
                    RequestHandler(service, own.bounds, timer: timer, meter: meter, headers: headers))
            }
        }
        _ = try pipeline.configureUpgradableHTTPServerPipeline(
            configuration: NIOUpgradableHTTPServerPipelineConfiguration(upgradeConfiguration: upgrade))
        let upgrading = try pipeline.handler(type: NIOTypedHTTPServerUpgradeHandler<Void>.self)
        try pipeline.addHandler(UpgradeGate(service, meter, timer), position: .before(upgrading))
    }
}

/// Checks the first request of a connection: an upgrade to anything except a WebSocket that the service opens is
/// treated as an ordinary request.
///
/// NIO's upgrade handler drops a request whose upgrade it declines, so that it would stay unanswered: a request of a
/// foreign page, or of a client that offers HTTP/2. And to what is no request it answers with 400 and `Connection: close`, but reads on.
private final class UpgradeGate: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let service: any ConnectionService
    private let meter: InboundMeter
    private let timer: RequestTimer

    init(_ service: any ConnectionService, _ meter: InboundMeter, _ timer: RequestTimer) {
        self.service = service
        self.meter = meter
        self.timer = timer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        if head.headers.contains(name: "Upgrade"), !isWanted(head, context.channel) {
            head.headers.remove(name: "Upgrade")
            // What follows such a request is not read as HTTP any more.
            head.headers.replaceOrAdd(name: "Connection", value: "close")
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError else { return context.fireErrorCaught(error) }
        // Closed in both directions at once, the client might not get the answer.
        context.close(mode: .output, promise: nil)
        meter.discard()
        timer.restart(RequestTimer.refusalTime)
    }

    private func isWanted(_ head: HTTPRequestHead, _ channel: any Channel) -> Bool {
        head.method == .GET && head.headers[canonicalForm: "Upgrade"].contains { $0.lowercased() == "websocket" }
            && head.headers["Sec-WebSocket-Version"] == ["13"] && head.headers["Sec-WebSocket-Key"].count == 1
            && service.opensWebSocket(head, on: channel)
    }
}

/// The headers of every answer that restrict what a browser may do with it. A page's own headers, which allow more, are
/// kept.
struct SecurityHeaders {
    /// Whether the connection is encrypted.
    let isEncrypted: Bool

    /// Browsers that came over TLS once come over nothing else for a year (RFC 6797).
    private static let strictTransport = "max-age=31536000"

    func add(to headers: inout HTTPHeaders) {
        func offer(_ name: String, _ value: String) {
            if !headers.contains(name: name) { headers.add(name: name, value: value) }
        }
        offer("X-Content-Type-Options", "nosniff")
        offer("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        offer("Referrer-Policy", "no-referrer")
        if isEncrypted { offer("Strict-Transport-Security", Self.strictTransport) }
    }
}
