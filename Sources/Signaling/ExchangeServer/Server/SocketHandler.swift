import ExchangeCore
import NIOCore
import NIOWebSocket
import SignalWire

/// One WebSocket: frames to messages and back, pings, and the closing handshake.
///
/// All that a connection costs beside NIO's own is this object and its meters. It holds no outbound queue of its own: what
/// NIO holds for it is bounded by ``OutboundMeter``.
final class SocketHandler: ChannelInboundHandler, NIOScheduledCallbackHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private enum State {
        case open
        /// A close frame has been sent; the client has ``SocketHandler/closingTime`` to close.
        case closing
    }

    /// How long a client may take to answer a close frame.
    private static let closingTime = TimeAmount.seconds(1)

    private let hub: ExchangeHub
    private let keepalive: TimeAmount
    /// `nil` once a session stands on the connection.
    private var meter: InboundMeter?
    private let outbound: OutboundMeter?
    private var context: ChannelHandlerContext?
    private var connection: ConnectionID?
    private var state = State.open
    private var assembly = MessageAssembly()
    private var callback: NIOScheduledCallback?
    private var hasBeenHeard = true
    private var frames: TokenBucket?
    private var isPaused = false

    /// Frames of any kind that a client may send: whole messages are counted elsewhere, but pings and pieces of messages
    /// cost work as well.
    private static let frameRate = TokenBucket.Rate(burst: 2_000, perSecond: 500)

    init(hub: ExchangeHub, keepalive: TimeAmount, meter: InboundMeter? = nil, outbound: OutboundMeter? = nil) {
        self.hub = hub
        self.keepalive = keepalive
        self.meter = meter
        self.outbound = outbound
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        meter?.enter(.message)
        schedule(in: keepalive)
        connection = hub.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) { forget() }

    func channelInactive(context: ChannelHandlerContext) {
        forget()
        context.fireChannelInactive()
    }

    private func forget() {
        callback?.cancel()
        callback = nil
        context = nil
        if let connection { hub.remove(connection) }
        connection = nil
    }

    // MARK: - In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        hasBeenHeard = true
        let frame = unwrapInboundIn(data)
        guard state == .closing || mayCome() else { return close(.policy("too many frames")) }
        switch frame.opcode {
        case .connectionClose: answerClose(frame)
        case _ where state == .closing: break  // Only the client's own close frame matters now.
        case .ping: write(.pong, frame.unmaskedData)
        case .pong: break
        case .text, .binary, .continuation: take(frame)
        default: fail(.protocolError)
        }
    }

    private func mayCome() -> Bool {
        let now = hub.now
        var bucket = frames ?? TokenBucket(Self.frameRate, at: now)
        defer { frames = bucket }
        return bucket.take(Self.frameRate, at: now)
    }

    private func take(_ frame: WebSocketFrame) {
        let kind: MessageAssembly.Kind =
            switch frame.opcode {
            case .text: .text
            case .binary: .binary
            case .continuation: .continuation
            default: .other
            }
        let step = assembly.take(
            MessageAssembly.Frame(
                kind: kind, isFinal: frame.fin, isMasked: frame.maskKey != nil,
                hasReservedBits: frame.rsv1 || frame.rsv2 || frame.rsv3, part: frame.unmaskedData.readableBytesView))
        switch step {
        case .incomplete: break
        case .text(let bytes):
            meter?.complete()
            if let connection { hub.receive(bytes, from: connection) }
        case .binary: close(.policy("messages are text"))
        case .violation: fail(.protocolError)
        case .tooBig: fail(.tooBig)
        }
    }

    /// A session stands on the connection: from now on its user's bounds hold, and not those of strangers.
    func admit(_ payer: Payer) {
        outbound?.payer = payer
        meter?.retire()
        meter = nil
    }

    /// Reads no more until ``resume()``: the client has sent more than its user's turns allow for. What it goes on
    /// sending waits in the kernel, and then with the client.
    func pause() {
        guard !isPaused, let context else { return }
        isPaused = true
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
    }

    /// Reads on.
    func resume() {
        guard isPaused, let context else { return }
        isPaused = false
        hasBeenHeard = true
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event as? InboundMeter.Refusal {
        case .tooLong?:
            hub.countBadFrame()
            close(1009, "before session.start messages have at most \(SignalLimits.sessionStartBytes) bytes")
        case .crowded?: close(1013, "too many clients that have not logged in; connect again later")
        case nil: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error as? NIOWebSocketError {
        case .invalidFrameLength?: fail(.tooBig)
        case .some: fail(.protocolError)
        case nil: context.close(promise: nil)  // TLS or the socket itself: there is nobody to tell.
        }
    }

    private func fail(_ reason: CloseReason) {
        guard state == .open else { return }
        hub.countBadFrame()
        close(reason)
    }

    // MARK: - Out

    /// Sends one text message; a closing or closed connection drops it.
    func send(_ message: [UInt8]) {
        guard state == .open, let context else { return }
        write(.text, context.channel.allocator.buffer(bytes: message))
    }

    /// Begins the closing handshake.
    func close(_ reason: CloseReason) { close(reason.code, reason.text) }

    private func close(_ code: UInt16, _ text: String) {
        guard state == .open, let context else { return }
        var payload = context.channel.allocator.buffer(capacity: 2 + text.utf8.count)
        payload.writeInteger(code)
        payload.writeString(text)
        write(.connectionClose, payload)
        state = .closing
        schedule(in: Self.closingTime)
    }

    private func answerClose(_ frame: WebSocketFrame) {
        guard let context else { return }
        if state == .open {
            // The same code back, or none if there was none (RFC 6455 §5.5.1).
            var payload = frame.unmaskedData
            write(.connectionClose, payload.readSlice(length: min(2, payload.readableBytes)) ?? ByteBuffer())
        }
        state = .closing
        context.close(promise: nil)
    }

    private func write(_ opcode: WebSocketOpcode, _ payload: ByteBuffer) {
        guard let context else { return }
        let frame = WebSocketFrame(fin: true, opcode: opcode, data: payload)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    // MARK: - Time

    private func schedule(in delay: TimeAmount) {
        callback?.cancel()
        callback = context.flatMap { try? $0.eventLoop.assumeIsolated().scheduleCallback(in: delay, handler: self) }
    }

    /// A whole interval without an answer to the ping at its start, and the link is dead.
    func handleScheduledCallback(eventLoop: some EventLoop) {
        guard let context else { return }
        switch state {
        case .closing:
            context.close(promise: nil)
        case .open where !hasBeenHeard && !isPaused:
            hub.countDeadLink()
            context.close(promise: nil)
        case .open:
            hasBeenHeard = false
            write(.ping, ByteBuffer())
            schedule(in: keepalive)
        }
    }
}
