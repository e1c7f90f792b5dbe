package import NIOCore
internal import NIOHTTP1

/// Measures what a connection sends of requests and messages that are not complete, and ends it when a stranger's is too
/// long, or when all strangers together, or all admitted peers together, exceed the bytes that the server may hold for
/// them.
///
/// Its place in the pipeline is behind TLS and in front of all handlers that assemble bytes: HTTP heads and bodies,
/// WebSocket frames and fragments.
package final class InboundMeter: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// Why no more is read, as an event for the handler whose request or message it is.
    package enum Refusal: Hashable, Sendable {
        /// The request or message is longer than one may be before its peer is admitted.
        case tooLong
        /// All peers of its kind hold as much as they may, and this one's request or message has been incomplete the
        /// longest.
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
        /// The request's client is admitted, and the body may be longer.
        case known
        /// The peer of the WebSocket is admitted.
        case admitted
        /// All input is dropped.
        case refused
    }

    /// The limit of a request's line and header fields, for every client.
    static let headBytes = 16_384
    /// What each line of a head takes up besides its text: two strings, each with a header of 32 bytes and up to 16 that malloc
    /// adds, and their 32 bytes in an array that doubles its length.
    static let lineCost = 160
    /// Around a message: its frames' headers, and pings.
    private static let frameBytes = 1_024

    private let budget: InboundBudget
    /// What admitted peers may hold together; nil for no bound.
    private let admitted: InboundBudget?
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
    /// Bytes of an admitted peer's frames and messages that are not complete, and those of them that ``holder`` holds.
    private var (partial, held) = (0, 0)
    /// Bytes of the whole frames among them: the beginning of a message.
    private var begun = 0
    /// Bytes of an admitted peer's last read.
    private var lastRead = 0

    init(_ budget: InboundBudget, admitted: InboundBudget?, _ bounds: StrangerBounds, timer: RequestTimer) {
        self.budget = budget
        self.admitted = admitted
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
        case .known:
            guard hold(unwrapInboundIn(data).readableBytes) else { return }
            return context.fireChannelRead(data)
        case .admitted: return readAdmitted(data, context)
        case .stranger: break
        }
        let buffer = unwrapInboundIn(data)
        unit += buffer.readableBytes
        guard unit <= limit else { return refuse(.tooLong) }
        let cost = cost(of: buffer)
        guard hold(cost) else { return }
        let before = completed
        context.fireChannelRead(data)
        // Bytes behind the end of a request or message cannot be separated from those before it: all of them count
        // until the next one is complete.
        if completed != before, self.context != nil, case .stranger = state { _ = hold(cost) }
    }

    /// What a stranger's bytes take up until they are complete.
    private func cost(of buffer: ByteBuffer) -> Int {
        switch phase {
        case .head, .waiting:
            // Each byte is in a buffer, which doubles its length, or in a string.
            2 * buffer.readableBytes + Self.lineCost * buffer.readableBytesView.count { $0 == UInt8(ascii: "\n") }
        case .body, .message: buffer.readableBytes
        }
    }

    /// Most messages are complete within one read, and are never counted.
    private func readAdmitted(_ data: NIOAny, _ context: ChannelHandlerContext) {
        lastRead = unwrapInboundIn(data).readableBytes
        partial += lastRead
        let before = completed
        context.fireChannelRead(data)
        guard self.context != nil, case .admitted = state else { return }
        if completed != before || partial == 0 {
            // The message that was counted is complete, and what is left belongs to the next one.
            release()
        } else if partial < held, let holder {
            // A ping between its parts is complete; the message is as old as before.
            admitted?.release(held - partial, of: holder)
            held = partial
        }
        if partial > held, hold(partial - held) { held = partial }
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

    /// A whole frame of a WebSocket was taken out of what came.
    ///
    /// - Parameters:
    ///   - bytes: Its length, header included.
    ///   - end: Whether it completes a message, is a part of one, or (nil) is none of a message.
    func took(frame bytes: Int, endsMessage end: Bool?) {
        guard case .admitted = state else {
            if end == true { complete() }
            return
        }
        // What follows a frame came with its last byte. So a length in more bytes than it needs, which `bytes` does not
        // have, does not add up from frame to frame.
        let rest = min(max(0, partial - begun - bytes), lastRead)
        switch end {
        case nil: break
        case false?: begun += bytes
        case true?:
            begun = 0
            completed += 1
        }
        partial = begun + rest
    }

    /// The rest of the request has no use any more: it was refused.
    ///
    /// What a stranger holds counts until the connection is closed: what was parsed of a head may stay until then.
    func discard() {
        if case .stranger = state {} else { release() }
        state = .refused
    }

    /// The peer of the WebSocket is admitted: from now on its own bounds apply.
    func admit() {
        if case .refused = state { return }
        release()
        state = .admitted
    }

    // MARK: - The budget

    /// That of the connection's peer; nil if nothing is counted.
    private var ownBudget: InboundBudget? {
        switch state {
        case .stranger, .refused: budget
        case .known, .admitted: admitted
        }
    }

    private func hold(_ bytes: Int) -> Bool {
        guard let budget = ownBudget else { return true }
        // A copy, because the budget may refuse this meter, which then uses `holder`.
        var own = holder
        guard budget.hold(bytes, for: &own, of: self) else { return false }
        holder = own
        return true
    }

    /// Called before ``state`` changes.
    private func release() {
        if let holder { ownBudget?.release(holder) }
        holder = nil
        held = 0
    }

    /// Stops reading, and sends the client the reason if possible.
    func refuse(_ refusal: Refusal) {
        guard let context else { return }
        if case .refused = state {
            // It stays open only so that the client gets the answer, and others need the memory.
            if refusal == .crowded { context.close(promise: nil) }
            return
        }
        if refusal == .crowded { release() }
        discard()
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
        // What was parsed of the head takes up several times its bytes until the connection closes, and counts no more. So this
        // client has no time to send the rest, nor to read what waits for it.
        if refusal == .crowded { context.close(promise: nil) }
    }
}
