import NIOCore
import NIOHTTP1
import SignalWire

/// One HTTP connection: requests in, answers out, one at a time.
final class RESTHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case idle
        case receiving(HTTPRequestHead, body: [UInt8])
        /// The answer is being made.
        case answering(TraceID)
        /// The answer is out, and the rest of the request is passed over: closed at once, the client might not get it.
        case refused
    }

    private let service: RESTService
    private let timer: RequestTimer
    private let headers: SecurityHeaders
    private var state = State.idle
    private var context: ChannelHandlerContext?

    init(service: RESTService, timer: RequestTimer, headers: SecurityHeaders) {
        self.service = service
        self.timer = timer
        self.headers = headers
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (state, unwrapInboundIn(data)) {
        case (.idle, .head(let head)):
            timer.restart(RequestTimer.requestTime)
            state = .receiving(head, body: [])
            if let length = head.headers.first(name: "Content-Length").flatMap(Int.init),
                length > SignalLimits.messageBytes
            {
                refuseBody(head)
            }
        case (.receiving(let head, var body), .body(let part)):
            state = .idle  // So that `body` is grown in place, not copied.
            guard body.count + part.readableBytes <= SignalLimits.messageBytes else { return refuseBody(head) }
            body += part.readableBytesView
            state = .receiving(head, body: body)
        case (.receiving(let head, let body), .end):
            answer(head, body, from: context.channel.remoteAddress)
        case (.refused, .end):
            context.close(promise: nil)
        case (.refused, _), (.idle, _), (.receiving, _), (.answering, _):
            break  // Parts of a request that is not answered any more.
        }
    }

    private func answer(_ head: HTTPRequestHead, _ body: [UInt8], from remote: SocketAddress?) {
        timer.restart(nil)
        let path = head.uri.prefix { $0 != "?" }
        let request = RESTRequest(
            method: head.method, path: String(path), headers: head.headers, body: body,
            client: remote?.ipAddress.flatMap { ClientAddress($0) } ?? .none, trace: TraceID())
        state = .answering(request.trace)
        service.answer(request) { [weak self] answer in
            self?.write(answer, trace: request.trace, head, keepsAlive: head.isKeepAlive)
        }
    }

    private func refuseBody(_ head: HTTPRequestHead) {
        state = .refused
        timer.restart(RequestTimer.refusalTime)
        let trace = TraceID()
        let message = "A body has at most \(SignalLimits.messageBytes) bytes."
        write(.failure(.tooLarge, message, trace: trace), trace: trace, head, keepsAlive: false)
    }

    private func write(_ answer: RESTAnswer, trace: TraceID, _ request: HTTPRequestHead, keepsAlive: Bool) {
        guard let context else { return }
        var head = HTTPResponseHead(version: request.version, status: answer.status, headers: answer.headers)
        if answer.status != .notModified, answer.status != .noContent {
            head.headers.add(name: "Content-Type", value: answer.contentType)
            head.headers.add(name: "Content-Length", value: "\(answer.body.count)")
        }
        head.headers.add(name: "Cache-Control", value: answer.cacheControl)
        head.headers.add(name: "Trace-Id", value: trace.description)
        headers.add(to: &head.headers)
        if !keepsAlive { head.headers.add(name: "Connection", value: "close") }
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if request.method != .HEAD, !answer.body.isEmpty {
            let body = context.channel.allocator.buffer(bytes: answer.body)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        }
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
        switch (state, keepsAlive) {
        case (.refused, _): break
        case (_, true):
            state = .idle
            timer.restart(RequestTimer.idleTime)
        case (_, false):
            let channel = context.channel
            written.futureResult.whenComplete { _ in channel.close(promise: nil) }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .answering(let trace) = state { service.abandon(trace) }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
