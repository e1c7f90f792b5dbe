package import NIOCore
package import NIOHTTP1
internal import NIOPosix
internal import NIOWebSocket

extension WebSocket {
    /// Where a client connects, and what it says there.
    package struct Destination: Sendable {
        let endpoint: HTTPEndpoint
        let headers: HTTPHeaders
        let subprotocols: [String]
        let trust: TLSTrust
        let openingTime: TimeAmount?
        let address: SocketAddress?

        /// - Parameters:
        ///   - address: The address to connect to, if the endpoint's name was looked up before, and judged.
        ///   - headers: Fields of the upgrade request, in addition to `Host` and those of RFC 6455.
        ///   - subprotocols: Names that the server may choose from (RFC 6455 §1.9), best first.
        ///   - openingTime: For looking up the name, TCP, TLS and the upgrade together; nil for a caller that has a deadline of
        ///     its own and calls ``WebSocket/abandon()``. TCP alone has 5 s.
        package init(
            _ endpoint: HTTPEndpoint, headers: HTTPHeaders = [:], subprotocols: [String] = [], trust: TLSTrust,
            openingTime: TimeAmount?, address: SocketAddress? = nil
        ) {
            self.address = address
            self.endpoint = endpoint
            self.headers = headers
            self.subprotocols = subprotocols
            self.trust = trust
            self.openingTime = openingTime
        }

        fileprivate var request: HTTPRequestHead {
            var head = HTTPRequestHead(
                version: .http1_1, method: .GET, uri: endpoint.target)
            head.headers.add(name: "Host", value: endpoint.authority)
            head.headers.add(contentsOf: headers)
            if !subprotocols.isEmpty {
                head.headers.add(name: "Sec-WebSocket-Protocol", value: subprotocols.joined(separator: ", "))
            }
            return head
        }
    }

    /// Why a connection that was established did not become a WebSocket.
    package enum OpeningError: Error, Hashable, Sendable {
        /// The server answered the upgrade with something else. A redirect is not followed, because the
        /// request's headers are intended for the named server only.
        ///
        /// - Parameters:
        ///   - status: The HTTP status, if an answer came.
        ///   - location: Where a redirect points.
        case notUpgraded(status: Int?, location: String?)
        /// The server chose a subprotocol that was not offered, or an extension.
        case notOffered(String)
        /// The server sent more bytes than this before its answer.
        case endless(limit: Int)
        /// The server took longer than ``Destination/openingTime``.
        case tooLate
    }

    /// Connects, and upgrades the connection to `socket`, which reports from then on. Must be called on `loop`.
    ///
    /// - Returns: The subprotocol that the server chose. ``TransportFailure`` explains the errors.
    package static func connect(
        _ socket: WebSocket, to destination: Destination, on loop: any EventLoop
    ) -> EventLoopFuture<String?> {
        let socket = NIOLoopBound(socket, eventLoop: loop)
        let opened = loop.makePromise(of: String?.self)
        let meter = AnswerMeter { limit in
            opened.fail(OpeningError.endless(limit: limit))
            socket.value.abandon()
        }
        let watcher = NIOLoopBound(AnswerWatcher(meter), eventLoop: loop)
        if let time = destination.openingTime {
            let deadline = loop.assumeIsolated().scheduleTask(in: time) {
                opened.fail(OpeningError.tooLate)
                socket.value.abandon()
            }
            opened.futureResult.assumeIsolated().whenComplete { _ in deadline.cancel() }
        }
        let settings = socket.value.settings
        var bootstrap = ClientBootstrap(group: loop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connectTimeout(.seconds(5))
        if let limit = settings.outboundBytes {
            bootstrap = bootstrap.channelOption(
                .writeBufferWaterMark, value: ChannelOptions.Types.WriteBufferWaterMark(low: limit / 4, high: limit))
        }
        bootstrap =
            bootstrap
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try socket.value.attach(to: channel)
                    let pipeline = channel.pipeline.syncOperations
                    let endpoint = destination.endpoint
                    if endpoint.isSecure {
                        try pipeline.addTLS(to: endpoint.host, trusting: destination.trust)
                    }
                    try pipeline.addHandler(watcher.value.meter)
                    let upgrade = Self.upgrade(socket, destination)
                    let result = try pipeline.configureUpgradableHTTPClientPipeline(
                        configuration: .init(upgradeConfiguration: upgrade))
                    let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                    try pipeline.addHandler(watcher.value, position: .after(decoder))
                    let answer = result.flatMapThrowing { outcome in
                        switch outcome {
                        case .upgraded(let subprotocol): return subprotocol
                        case .declined: throw watcher.value.refusal
                        }
                    }
                    answer.whenFailure { _ in channel.close(promise: nil) }
                    // What is written before the upgrade's own handler is gone would be lost.
                    answer.whenSuccess { _ in loop.assumeIsolated().execute { socket.value.begin() } }
                    answer.cascade(to: opened)
                }
            }
        let connecting =
            destination.address.map { bootstrap.connect(to: $0) }
            ?? bootstrap.connect(host: destination.endpoint.host, port: destination.endpoint.port)
        connecting.cascadeFailure(to: opened)
        return opened.futureResult
    }

    private enum Outcome: Sendable {
        case upgraded(subprotocol: String?)
        case declined
    }

    private static func upgrade(
        _ socket: NIOLoopBound<WebSocket>, _ destination: Destination
    ) -> NIOTypedHTTPClientUpgradeConfiguration<Outcome> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Outcome>(
            maxFrameSize: socket.value.settings.messageBytes, enableAutomaticErrorHandling: false,
            upgradePipelineHandler: { channel, answer in
                channel.eventLoop.makeCompletedFuture {
                    let subprotocol = try chosen(answer, among: destination.subprotocols)
                    try channel.pipeline.syncOperations.addHandler(socket.value)
                    return .upgraded(subprotocol: subprotocol)
                }
            })
        return NIOTypedHTTPClientUpgradeConfiguration(
            upgradeRequestHead: destination.request, upgraders: [upgrader],
            notUpgradingCompletionHandler: { channel in channel.eventLoop.makeSucceededFuture(.declined) })
    }

    /// The subprotocol that the server has chosen (RFC 6455 §4.1): one of those that were offered, or none.
    private static func chosen(_ answer: HTTPResponseHead, among offered: [String]) throws -> String? {
        if let other = answer.headers["Sec-WebSocket-Extensions"].first(where: { !$0.isEmpty }) {
            throw OpeningError.notOffered("the extension \"\(other)\"")
        }
        let names = answer.headers["Sec-WebSocket-Protocol"]
        guard let name = names.first else { return nil }
        guard names.count == 1, offered.contains(name) else {
            throw OpeningError.notOffered("the subprotocol \"\(names.joined(separator: ", "))\"")
        }
        return name
    }
}

/// Notes what the server answers to the upgrade, for the error message, and passes everything on.
private final class AnswerWatcher: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private(set) var refusal = WebSocket.OpeningError.notUpgraded(status: nil, location: nil)
    private var hasSeenHead = false
    /// Bounds what comes before the answer; what follows is not HTTP.
    let meter: AnswerMeter

    init(_ meter: AnswerMeter) { self.meter = meter }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Only the first thing through is looked at: after an upgrade what passes is not HTTP.
        if !hasSeenHead {
            hasSeenHead = true
            meter.awaitBody(of: nil)
            if case .head(let head) = unwrapInboundIn(data) {
                refusal = .notUpgraded(
                    status: Int(head.status.code), location: head.headers.first(name: "Location"))
            }
        }
        context.fireChannelRead(data)
    }
}
