package import NIOCore
internal import NIOHTTP1

/// Measures what a connection sends before its peer is admitted, and ends it when a request is too long, or when all
/// strangers together exceed the bytes that the server may hold for them.
///
/// Its place in the pipeline is behind TLS and in front of all handlers that assemble bytes: HTTP heads and bodies,
/// WebSocket frames and fragments. Once the peer of a WebSocket is admitted, it removes itself from the pipeline.
package final class InboundMeter: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// Why no more is read, as an event for the handler whose request or message it is.
    package enum Refusal: Hashable, Sendable {
        /// The request or message is longer than one may be before its peer is admitted.
        case tooLong
        /// Strangers hold as much as they may, and this one has been at it the longest.
        case crowded
    }

    /// What the bytes belong to that come now.
    enum Phase: Hashable, Sendable {
        /// The head of a request, which no handler knows of yet.
        case head
        /// The body of a request: the handler of requests refuses it.
        case body
        /// Requests that wait until one before them is answered.
        case waiting
        /// Messages of a WebSocket: their handler refuses them.
        case message
    }

    private enum State {
        case stranger
        /// The request's client is admitted; bytes are not counted, however long the body may be.
        case known
        /// All input is dropped.
        case refused
    }

    /// The limit of a request's line and header fields, for every client.
    static let headBytes = 16_384
    /// Around a message: its frames' headers, and pings.
    private static let frameBytes = 1_024

    private let budget: InboundBudget
    private let bounds: StrangerBounds
    private let timer: RequestTimer
    private var context: ChannelHandlerContext?
    private var state = State.stranger
    private var phase = Phase.head
    /// Bytes of the request or message that is being read.
    private var unit = 0
    /// Complete requests and messages, to detect whether one was within a read.
    private var completed = 0
    private(set) var holder: StrangerBudget.Holder?

    init(_ budget: InboundBudget, _ bounds: StrangerBounds, timer: RequestTimer) {
        self.budget = budget
        self.bounds = bounds
        self.timer = timer
    }

    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    package func handlerRemoved(context: ChannelHandlerContext) {
        release()
        self.context = nil
    }

    package func channelInactive(context: ChannelHandlerContext) {
        release()
        context.fireChannelInactive()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        case .refused: return
        case .known: return context.fireChannelRead(data)
        case .stranger: break
        }
        let bytes = unwrapInboundIn(data).readableBytes
        unit += bytes
        guard unit <= limit else { return refuse(.tooLong) }
        guard hold(bytes) else { return }
        let before = completed
        context.fireChannelRead(data)
        // Bytes behind the end of a request or message cannot be separated from those before it: all of them count
        // until the next one is complete.
        if completed != before, self.context != nil, case .stranger = state { _ = hold(bytes) }
    }

    private var limit: Int {
        switch phase {
        case .head, .waiting: Self.headBytes
        // The body alone is measured by the handler of requests; chunks have lengths and ends around them.
        case .body: Self.headBytes + 2 * bounds.bodyBytes
        case .message: bounds.messageBytes + Self.frameBytes
        }
    }

    /// What comes from now on belongs to something else.
    func enter(_ phase: Phase) {
        self.phase = phase
        if phase == .message { complete() }
    }

    /// The request's client is admitted, and its body may be longer.
    func passBody() {
        guard case .stranger = state else { return }
        release()
        state = .known
    }

    /// A request or message is complete, and what comes from now on is the next one.
    func complete() {
        completed += 1
        unit = 0
        release()
        if case .known = state { state = .stranger }
    }

    /// The rest of the request has no use any more: it was refused.
    func discard() {
        release()
        state = .refused
    }

    /// The peer is admitted: from now on its own bounds hold.
    func retire() {
        release()
        state = .known
        if let context { context.pipeline.syncOperations.removeHandler(context: context, promise: nil) }
    }

    // MARK: - The budget

    private func hold(_ bytes: Int) -> Bool {
        // A copy, because the budget may refuse this meter, which then uses `holder`.
        var own = holder
        guard budget.hold(bytes, for: &own, of: self) else { return false }
        holder = own
        return true
    }

    private func release() {
        if let holder { budget.release(holder) }
        holder = nil
    }

    /// Stops reading, and sends the client the reason if possible.
    func refuse(_ refusal: Refusal) {
        guard let context else { return }
        if case .refused = state { return }
        release()
        state = .refused
        switch phase {
        case .head: answer(refusal, context)
        case .body, .message: context.fireUserInboundEventTriggered(refusal)
        // The answer to the request before would be taken for this one's.
        case .waiting: context.close(promise: nil)
        }
    }

    /// Answers a request of which only a part of the head is known.
    private func answer(_ refusal: Refusal, _ context: ChannelHandlerContext) {
        timer.restart(RequestTimer.refusalTime)
        let status: HTTPResponseStatus
        var retry = ""
        switch refusal {
        case .tooLong: status = .requestHeaderFieldsTooLarge
        case .crowded:
            status = .serviceUnavailable
            retry = "Retry-After: \(InboundBudget.retrySeconds)\r\n"
        }
        let text =
            "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\nContent-Length: 0\r\n\(retry)Cache-Control: no-store\r\n"
            + "Connection: close\r\n\r\n"
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(string: text)), promise: nil)
    }
}
