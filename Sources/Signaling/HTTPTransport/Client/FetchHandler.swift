internal import Core
internal import NIOCore
internal import NIOHTTP1
internal import TLS

/// Sends requests on a connection, one after the other, and puts their answers together.
final class FetchHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    struct Job {
        let request: HTTPFetch.Request
        let bounds: HTTPFetch.Bounds
        /// Whether the server is asked to close the connection afterwards.
        let isLast: Bool

        init(_ request: HTTPFetch.Request, _ bounds: HTTPFetch.Bounds, isLast: Bool) {
            self.request = request
            self.bounds = bounds
            self.isLast = isLast
        }
    }

    enum Report {
        case answered(HTTPFetch.Answer, isReusable: Bool)
        /// - Parameter maySendAgain: Whether the server cannot have served the request, or may serve it twice.
        case failed(any Error, maySendAgain: Bool)
    }

    private struct Exchange {
        let job: Job
        let report: (Report) -> Void
        var number: Int
        var isSent = false
        var isWritten = false
        var head: HTTPResponseHead?
        var body: [UInt8] = []
        var isWhole = false
    }

    /// Called when the connection ends while it serves no request.
    var idleEnd: (() -> Void)?

    private var context: ChannelHandlerContext?
    private var exchange: Exchange?
    private var isActive = false
    /// Why the connection has ended.
    private var end: (any Error)?
    private var isBroken = false
    private var lastNumber = 0
    private var silence: Scheduled<Void>?
    private var meter: AnswerMeter?

    /// Prepares a connection: HTTP, with what bounds it, and a handler.
    static func add(to pipeline: ChannelPipeline.SynchronousOperations) throws -> FetchHandler {
        let handler = FetchHandler()
        let meter = AnswerMeter { [weak handler] limit in
            handler?.fail(HTTPFetch.Failure.endless(limit: limit), isOurs: true)
        }
        handler.meter = meter
        try pipeline.addHandler(meter)
        try pipeline.addHTTPClientHandlers()
        try pipeline.addHandler(handler)
        return handler
    }

    /// Sends a request. The report comes exactly once, perhaps before this returns.
    func begin(_ job: Job, _ report: @escaping (Report) -> Void) {
        guard end == nil, !isBroken, exchange == nil else {
            return report(.failed(end ?? HTTPFetch.Failure.closed, maySendAgain: true))
        }
        lastNumber += 1
        exchange = Exchange(job: job, report: report, number: lastNumber)
        if isActive { send() }
    }

    /// Ends the connection and its request, if it has one.
    func giveUp(_ error: any Error) { fail(error, isOurs: true) }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        isActive = context.channel.isActive
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        fail(HTTPFetch.Failure.closed)
        self.context = nil
        idleEnd = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        isActive = true
        send()
        context.fireChannelActive()
    }

    private func send() {
        guard let context, let exchange, !exchange.isSent else { return }
        self.exchange?.isSent = true
        meter?.awaitHead()
        let request = exchange.job.request
        var head = HTTPRequestHead(
            version: .http1_1, method: request.method, uri: HTTPEndpoint.escaped(request.target))
        head.headers.add(name: "Host", value: request.endpoint.authority)
        head.headers.add(contentsOf: request.headers)
        let body = Self.body(of: request, context.channel.allocator)
        head.headers.replaceOrAdd(name: "Content-Length", value: "\(body.readableBytes)")
        if exchange.job.isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        listen(context)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if body.readableBytes > 0 { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        let written = context.eventLoop.makePromise(of: Void.self)
        let number = exchange.number
        written.futureResult.assumeIsolated().whenSuccess { [weak self] in
            guard self?.exchange?.number == number else { return }
            self?.exchange?.isWritten = true
        }
        if request.secretBody != nil {
            let loop = context.eventLoop.assumeIsolated()
            var sent = body
            written.futureResult.assumeIsolated().whenComplete { _ in
                // No other code refers to the buffer once it was written, so that this overwrites it in place.
                loop.execute {
                    sent.clear()
                    sent.writeRepeatingByte(0, count: sent.capacity)
                }
            }
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    private static func body(of request: HTTPFetch.Request, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        guard let secret = request.secretBody else { return allocator.buffer(bytes: request.body) }
        var buffer = allocator.buffer(capacity: secret.count)
        secret.read { bytes in
            for index in 0..<bytes.byteCount { if let byte = bytes.uint8(at: index) { buffer.writeInteger(byte) } }
        }
        return buffer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Bytes without a request are not the answer to the next one.
        guard exchange?.isSent == true, exchange?.isWhole == false else { return breakOff(context) }
        listen(context)
        switch unwrapInboundIn(data) {
        case .head(let head):
            exchange?.head = head
            meter?.awaitBody(of: exchange?.job.bounds.bodyBytes ?? 0)
        case .body(let part):
            guard let exchange else { return }
            let (count, limit) = (exchange.body.count, exchange.job.bounds.bodyBytes)
            guard count + part.readableBytes <= limit else {
                return fail(HTTPFetch.Failure.tooLong(limit: limit), isOurs: true)
            }
            self.exchange?.body += part.readableBytesView
        case .end:
            // Reported once all that came with it was read, because more than the answer breaks the connection.
            exchange?.isWhole = true
            silence?.cancel()
            context.eventLoop.assumeIsolated().execute { self.finish() }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        isActive = false
        fail(HTTPFetch.Failure.closed)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard exchange?.isWhole != true else { return breakOff(context) }
        let isCutShort = (error as? TLSError)?.code == .truncated
        fail(exchange?.isSent == true && isCutShort ? HTTPFetch.Failure.closed : error)
    }

    private func breakOff(_ context: ChannelHandlerContext) {
        isBroken = true
        finish()
        context.close(promise: nil)
    }

    /// Restarts the time in which the server must send something.
    private func listen(_ context: ChannelHandlerContext) {
        silence?.cancel()
        guard let exchange else { return }
        silence = context.eventLoop.assumeIsolated().scheduleTask(in: exchange.job.bounds.silence) { [weak self] in
            self?.fail(HTTPFetch.Failure.tooLate, isOurs: true)
        }
    }

    /// Reports an answer that is complete.
    private func finish() {
        guard let exchange, exchange.isWhole, let head = exchange.head else { return }
        silence?.cancel()
        self.exchange = nil
        let answer = HTTPFetch.Answer(
            status: Int(head.status.code), headers: head.headers, body: exchange.body, isWhole: true)
        // A server that answers before it has the whole request may not read the rest.
        let isReusable =
            head.isKeepAlive && exchange.isWritten && isActive && !isBroken && !exchange.job.isLast
            && head.status != .switchingProtocols
        exchange.report(.answered(answer, isReusable: isReusable))
    }

    /// Closes the connection, and reports that its request failed.
    ///
    /// - Parameter isOurs: Whether this end gave up.
    private func fail(_ error: any Error, isOurs: Bool = false) {
        finish()
        guard end == nil else { return }
        end = error
        silence?.cancel()
        context?.close(promise: nil)
        meter = nil
        guard let exchange else {
            idleEnd?()
            return
        }
        self.exchange = nil
        if let head = exchange.head, exchange.job.bounds.acceptsPart, error is HTTPFetch.Failure {
            let answer = HTTPFetch.Answer(
                status: Int(head.status.code), headers: head.headers, body: exchange.body, isWhole: false)
            return exchange.report(.answered(answer, isReusable: false))
        }
        let isUnserved = !exchange.isWritten || exchange.job.request.isRepeatable
        exchange.report(.failed(error, maySendAgain: !isOurs && exchange.head == nil && isUnserved))
    }
}
