package import NIOCore
package import NIOHTTP1
internal import NIOPosix

/// One request to a server and its answer, on a connection of its own.
///
/// Redirects are not followed: whoever asks may have been told where it may ask, and the answer must not widen that.
package enum HTTPFetch {
    /// What is sent, and where.
    package struct Request: Sendable {
        package var method: HTTPMethod
        package var endpoint: HTTPEndpoint
        /// The path and the query.
        package var target: String
        /// In addition to `Host`, `Content-Length` and `Connection`.
        package var headers: HTTPHeaders
        package var body: [UInt8]

        package init(
            _ method: HTTPMethod, _ endpoint: HTTPEndpoint, target: String, headers: HTTPHeaders = [:],
            body: [UInt8] = []
        ) {
            self.method = method
            self.endpoint = endpoint
            self.target = target
            self.headers = headers
            self.body = body
        }
    }

    /// What the server says.
    package struct Answer: Sendable {
        package let status: Int
        package let headers: HTTPHeaders
        package let body: [UInt8]
    }

    /// Why an answer does not count. ``TransportFailure`` explains it.
    package enum Failure: Error, Hashable, Sendable {
        /// It has more bytes than this.
        case tooLong(limit: Int)
        /// It did not come in time.
        case tooLate
        /// The connection was closed before the answer's end.
        case closed
    }

    /// How the answer is bounded.
    package struct Bounds: Sendable {
        let bodyBytes: Int
        let time: TimeAmount

        /// - Parameters:
        ///   - bodyBytes: The most that the answer's body may have.
        ///   - time: From now to the answer's end.
        package init(bodyBytes: Int, time: TimeAmount) {
            self.bodyBytes = bodyBytes
            self.time = time
        }
    }

    /// Sends a request to the server at an address, which was looked up, and perhaps judged, before.
    package static func send(
        _ request: Request, to address: SocketAddress, trust: TLSTrust, within bounds: Bounds, on loop: any EventLoop
    ) -> EventLoopFuture<Answer> {
        let promise = loop.makePromise(of: Answer.self)
        let endpoint = request.endpoint
        let connecting = ClientBootstrap(group: loop)
            .connectTimeout(bounds.time)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if endpoint.isSecure {
                        try pipeline.addTLS(to: endpoint.host, trusting: trust, protocols: ["http/1.1"])
                    }
                    try pipeline.addHTTPClientHandlers()
                    try pipeline.addHandler(FetchHandler(request, limit: bounds.bodyBytes, promise: promise))
                }
            }
            .connect(to: address)
        let deadline = loop.scheduleTask(in: bounds.time) { promise.fail(Failure.tooLate) }
        connecting.cascadeFailure(to: promise)
        promise.futureResult.whenComplete { _ in
            deadline.cancel()
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        return promise.futureResult
    }
}

/// Sends the request once the connection is established, and puts the answer together.
private final class FetchHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let request: HTTPFetch.Request
    private let limit: Int
    private let promise: EventLoopPromise<HTTPFetch.Answer>
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []

    init(_ request: HTTPFetch.Request, limit: Int, promise: EventLoopPromise<HTTPFetch.Answer>) {
        self.request = request
        self.limit = limit
        self.promise = promise
    }

    func channelActive(context: ChannelHandlerContext) {
        var head = HTTPRequestHead(version: .http1_1, method: request.method, uri: request.target)
        head.headers.add(name: "Host", value: request.endpoint.authority)
        head.headers.add(contentsOf: request.headers)
        head.headers.replaceOrAdd(name: "Content-Length", value: "\(request.body.count)")
        head.headers.replaceOrAdd(name: "Connection", value: "close")
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !request.body.isEmpty {
            let bytes = context.channel.allocator.buffer(bytes: request.body)
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body(let part):
            guard body.count + part.readableBytes <= limit else {
                promise.fail(HTTPFetch.Failure.tooLong(limit: limit))
                return context.close(promise: nil)
            }
            body += part.readableBytesView
        case .end:
            guard let head else { return }
            promise.succeed(
                HTTPFetch.Answer(status: Int(head.status.code), headers: head.headers, body: body))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        promise.fail(HTTPFetch.Failure.closed)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        promise.fail(error)
        context.close(promise: nil)
    }
}
