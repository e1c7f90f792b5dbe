internal import Core
internal import Glibc
internal import NIOCore
internal import NIOHTTP1

/// One HTTP connection: requests in, answers out, one at a time.
final class RequestHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case idle
        case receiving(HTTPRequestHead, body: [UInt8], limit: Int)
        /// The answer is being made.
        case answering(HTTPRequest.Number)
        /// The body of the answer has no known end; what comes is passed over.
        case streaming(HTTPStream)
        /// The answer is out, and the rest of the request is passed over: closed at once, the client might not get it.
        case refused
    }

    private let service: any ConnectionService
    private let bounds: StrangerBounds
    private let timer: RequestTimer
    private let meter: InboundMeter
    private let headers: SecurityHeaders
    private var state = State.idle
    private var context: ChannelHandlerContext?

    init(
        _ service: any ConnectionService, _ bounds: StrangerBounds, timer: RequestTimer, meter: InboundMeter,
        headers: SecurityHeaders
    ) {
        self.service = service
        self.bounds = bounds
        self.timer = timer
        self.meter = meter
        self.headers = headers
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (state, unwrapInboundIn(data)) {
        case (.idle, .head(let head)):
            begin(head.inOriginForm)
        case (.receiving(let head, var body, let limit), .body(let part)):
            state = .idle  // So that `body` is grown in place, not copied.
            guard body.count + part.readableBytes <= limit else { return refuse(.tooLong, head, limit) }
            body += part.readableBytesView
            state = .receiving(head, body: body, limit: limit)
        case (.receiving(let head, let body, _), .end):
            answer(head, body, on: context.channel)
        case (.refused, .end):
            context.close(promise: nil)
        case (.refused, _), (.idle, _), (.receiving, _), (.answering, _), (.streaming, _):
            break  // Parts of a request that is not answered any more.
        }
    }

    private func begin(_ head: HTTPRequestHead) {
        timer.restart(RequestTimer.requestTime)
        meter.enter(.body)
        let length = head.headers.first(name: "Content-Length").flatMap(Int.init)
        var limit = bounds.bodyBytes
        // Who sends is looked at only if it matters, for that costs something.
        if length ?? 0 > limit || head.headers.contains(name: "Transfer-Encoding") {
            limit = service.bodyLimit(of: head)
            if limit > bounds.bodyBytes { meter.passBody() }
        }
        state = .receiving(head, body: [], limit: limit)
        if let length, length > limit { refuse(.tooLong, head, limit) }
    }

    private func answer(_ head: HTTPRequestHead, _ body: [UInt8], on channel: any Channel) {
        timer.restart(nil)
        meter.complete()
        meter.enter(.waiting)
        let request = HTTPRequest(head: head, body: body, number: HTTPRequest.Number())
        state = .answering(request.number)
        service.answer(request, on: channel) { [weak self] answer in
            self?.write(answer, head, keepsAlive: head.isKeepAlive && !answer.endsConnection)
        }
    }

    private func refuse(_ refusal: InboundMeter.Refusal, _ head: HTTPRequestHead, _ limit: Int) {
        state = .refused
        meter.discard()
        timer.restart(RequestTimer.refusalTime)
        let answer = service.refusal(refusal, limit: limit, of: head, HTTPRequest.Number())
        write(answer, head, keepsAlive: false)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let refusal = event as? InboundMeter.Refusal, case .receiving(let head, _, let limit) = state {
            return refuse(refusal, head, limit)
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func write(_ answer: HTTPAnswer, _ request: HTTPRequestHead, keepsAlive: Bool) {
        guard let context else { return }
        if let begin = answer.stream, request.method != .HEAD { return stream(answer, request, begin) }
        var head = HTTPResponseHead(version: request.version, status: answer.status, headers: answer.headers)
        if answer.status != .notModified, answer.status != .noContent {
            head.headers.add(name: "Content-Type", value: answer.contentType)
            head.headers.add(name: "Content-Length", value: "\(answer.streamBytes ?? answer.body.count)")
        }
        head.headers.add(name: "Cache-Control", value: answer.cacheControl)
        // A server with a clock sends it (RFC 9110 §6.6.1), so that clients can find out that theirs is wrong.
        head.headers.add(name: "Date", value: WallClock(unixMilliseconds: Int64(time(nil)) * 1_000).httpDate)
        headers.add(to: &head.headers)
        if !keepsAlive { head.headers.add(name: "Connection", value: "close") }
        guard request.method != .HEAD, !answer.body.isEmpty else {
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            return end(keepsAlive: keepsAlive)
        }
        if case .refused = state {} else { timer.restart(RequestTimer.answerTime) }
        // The next request is read when the client has taken this answer, so that answers do not pile up for one that asks
        // and does not read.
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenSuccess { [weak self] in self?.end(keepsAlive: keepsAlive) }
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        let body = context.channel.allocator.buffer(bytes: answer.body)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(body))), promise: sent)
    }

    /// Begins an answer whose body the service sends when it has parts of it.
    private func stream(_ answer: HTTPAnswer, _ request: HTTPRequestHead, _ begin: (HTTPStream) -> Void) {
        guard let context else { return }
        var head = HTTPResponseHead(version: request.version, status: answer.status, headers: answer.headers)
        head.headers.add(name: "Content-Type", value: answer.contentType)
        if let bytes = answer.streamBytes { head.headers.add(name: "Content-Length", value: "\(bytes)") }
        head.headers.add(name: "Cache-Control", value: answer.cacheControl)
        head.headers.add(name: "Date", value: WallClock(unixMilliseconds: Int64(time(nil)) * 1_000).httpDate)
        head.headers.add(name: "Connection", value: "close")
        headers.add(to: &head.headers)
        timer.restart(nil)
        let stream = HTTPStream(context.channel)
        state = .streaming(stream)
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        if !answer.body.isEmpty { stream.send(answer.body) {} }
        begin(stream)
    }

    /// The answer is out.
    private func end(keepsAlive: Bool) {
        guard let context else { return }
        let written = context.eventLoop.makePromise(of: Void.self)
        switch (state, keepsAlive) {
        case (.refused, _): break
        case (_, true):
            state = .idle
            meter.enter(.head)
            timer.restart(RequestTimer.idleTime)
        case (_, false):
            let channel = context.channel
            written.futureResult.whenComplete { _ in channel.close(promise: nil) }
        }
        // The next request may come before this returns.
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // An answer that comes from now on is not written, and begins no stream.
        self.context = nil
        if case .answering(let request) = state { service.abandon(request) }
        if case .streaming(let stream) = state { stream.closed() }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

extension HTTPRequestHead {
    /// The same with a path as its target, if that is a whole URL, as a client of a proxy writes it (RFC 9112 §3.2.2). Its host takes the
    /// place of `Host`. A URL with a user's name stays, and is not found.
    var inOriginForm: HTTPRequestHead {
        guard let scheme = ["http://", "https://"].first(where: { uri.prefix($0.count).lowercased() == $0 }) else {
            return self
        }
        let rest = uri.dropFirst(scheme.count)
        let host = rest.prefix { !["/", "?", "#"].contains($0) }
        guard !host.isEmpty, !host.contains("@") else { return self }
        let target = rest[host.endIndex...]
        var head = self
        head.uri = target.hasPrefix("/") ? String(target) : "/" + target
        head.headers.replaceOrAdd(name: "Host", value: String(host))
        return head
    }
}
