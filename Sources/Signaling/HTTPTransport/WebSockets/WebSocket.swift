package import NIOCore
package import NIOWebSocket
internal import TLS
package import Core

/// One end of a WebSocket (RFC 6455): frames to messages and back, pings, and the closing handshake.
///
/// It lives on its channel's event loop and reports what happens there. It holds no outbound queue of its own: NIO holds what
/// waits, and ``OutboundMeter`` at a server, or ``Settings/outboundBytes`` at a client, bounds it.
package final class WebSocket: ChannelInboundHandler, NIOScheduledCallbackHandler {
    package typealias InboundIn = WebSocketFrame
    package typealias OutboundOut = WebSocketFrame

    /// Which end of the connection this is.
    package enum Role: Sendable {
        case client, server
    }

    /// The rules of a WebSocket, shared by all sockets of a server.
    package final class Settings: Sendable {
        let role: Role
        let messageBytes: Int
        let keepalive: TimeAmount?
        let frameRate: TokenBucket.Rate?
        let closingTime: TimeAmount?
        let outboundBytes: Int?

        /// - Parameters:
        ///   - messageBytes: The most that an incoming message may have.
        ///   - keepalive: The interval of pings. If a whole interval passes without a frame from the peer, the socket is closed.
        ///     Nil for no pings but those of ``WebSocket/ping()``.
        ///   - frameRate: The peer's frames of any kind, because pings and fragments cost work as well; nil for no limit.
        ///   - closingTime: How long the peer may take to answer a close frame; nil for as long as it likes.
        ///   - outboundBytes: The most that may wait for a peer that reads slowly; past it the socket fails. Nil for no limit
        ///     here. Takes effect only on sockets that ``WebSocket/connect(_:to:on:)`` opens.
        package init(
            _ role: Role, messageBytes: Int, keepalive: TimeAmount? = nil, frameRate: TokenBucket.Rate? = nil,
            closingTime: TimeAmount? = .seconds(1), outboundBytes: Int? = nil
        ) {
            self.role = role
            self.messageBytes = messageBytes
            self.keepalive = keepalive
            self.frameRate = frameRate
            self.closingTime = closingTime
            self.outboundBytes = outboundBytes
        }
    }

    /// What happens to a socket. ``closed(code:)`` or ``failed(_:)`` comes once, and last.
    package enum Event {
        /// Messages may be sent.
        case opened(WebSocket)
        case text([UInt8])
        case binary([UInt8])
        case pong
        /// A ping or a part of a message came.
        case lifeSign
        /// The peer has sent too much of a message, see ``InboundMeter``. The receiver of this event closes the socket.
        case refused(InboundMeter.Refusal)
        /// The peer has broken a rule of the protocol, and a close frame with this code was sent. Only at a server; a client's
        /// socket has failed.
        case fault(code: UInt16)
        /// The peer has sent nothing for a whole interval of pings, and the socket is about to be closed.
        case silent
        /// The connection is closed.
        ///
        /// - Parameter code: The code in the peer's close frame, if one came and had a code.
        case closed(code: UInt16?)
        case failed(any Error)
    }

    /// The peer has broken a rule of RFC 6455, or a bound of this end.
    package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        /// The close code that reports it.
        package let code: UInt16
        package let description: String
    }

    private enum State {
        case open
        /// A close frame has been sent; the peer has ``Settings/closingTime`` to close.
        case closing
    }

    package let settings: Settings
    private var onEvent: ((Event) -> Void)?
    /// Measures what comes; nil at a client.
    private let meter: InboundMeter?
    private var context: ChannelHandlerContext?
    /// At a client the connection, from before it is established: an attempt that is given up half-way closes it too.
    private var channel: (any Channel)?
    private var isAbandoned = false
    private var state = State.open
    private var assembly: MessageAssembly
    private var callback: NIOScheduledCallback?
    private var hasBeenHeard = true
    private var frames = TokenBucket()
    private var isPaused = false
    /// Frames that a client's socket got before it could write: they came in one read with the end of the upgrade.
    private var early: [WebSocketFrame]?
    private var closeCode: UInt16?
    /// Whether the peer has sent a close frame: one that has not may have died.
    package private(set) var hasSeenClose = false

    /// - Parameters:
    ///   - meter: At a server, what measures the connection's bytes; more may come after ``admit()``.
    ///   - onEvent: Called on the event loop. It is released after the last event, and by ``abandon()``.
    package init(_ settings: Settings, meter: InboundMeter? = nil, onEvent: @escaping (Event) -> Void) {
        self.settings = settings
        self.meter = meter
        self.onEvent = onEvent
        assembly = MessageAssembly(limit: settings.messageBytes, expectsMasks: settings.role == .server)
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        meter?.enter(.message)
        if let keepalive = settings.keepalive { schedule(in: keepalive) }
        switch settings.role {
        case .server: onEvent?(.opened(self))
        case .client: early = []
        }
    }

    /// A client's connection is upgraded, and what it sends from now on arrives.
    package func begin() {
        guard let context, let frames = early else { return }
        early = nil
        onEvent?(.opened(self))
        for frame in frames where self.context != nil { handle(frame, context) }
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        forget()
        finish(.closed(code: closeCode))
    }

    package func channelInactive(context: ChannelHandlerContext) {
        forget()
        finish(.closed(code: closeCode))
        context.fireChannelInactive()
    }

    private func forget() {
        callback?.cancel()
        callback = nil
        context = nil
    }

    private func finish(_ event: Event) {
        let report = onEvent
        onEvent = nil
        report?(event)
    }

    // MARK: - In

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        hasBeenHeard = true
        let frame = unwrapInboundIn(data)
        if early != nil { early?.append(frame) } else { handle(frame, context) }
    }

    private func handle(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
        guard state == .closing || mayCome(context) else { return close(1008, "too many frames") }
        switch frame.opcode {
        case .connectionClose: answerClose(frame)
        // A closing server accepts no more requests. A closing client still receives what the server had sent before.
        case _ where state == .closing && settings.role == .server:
            meter?.took(frame: frame.wireBytes, endsMessage: nil)
        case .ping:
            meter?.took(frame: frame.wireBytes, endsMessage: nil)
            if state == .open { write(.pong, frame.unmaskedData) }
            onEvent?(.lifeSign)
        case .pong:
            meter?.took(frame: frame.wireBytes, endsMessage: nil)
            onEvent?(.pong)
        case .text, .binary, .continuation: take(frame)
        default: fail(Self.notAFrame)
        }
    }

    private func mayCome(_ context: ChannelHandlerContext) -> Bool {
        guard let rate = settings.frameRate else { return true }
        return frames.take(rate, at: Instant(context.eventLoop.now))
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
        case .incomplete:
            meter?.took(frame: frame.wireBytes, endsMessage: false)
            onEvent?(.lifeSign)
        case .text(let bytes):
            meter?.took(frame: frame.wireBytes, endsMessage: true)
            onEvent?(.text(bytes))
        case .binary(let bytes):
            meter?.took(frame: frame.wireBytes, endsMessage: true)
            onEvent?(.binary(bytes))
        case .violation: fail(Self.notAFrame)
        case .tooBig: fail(tooBig)
        }
    }

    /// The peer of a server's socket is known: from now on its own bounds hold, and not those of strangers.
    package func admit() { meter?.admit() }

    /// Stops reading until ``resume()``. What the peer sends meanwhile waits in the kernel, and then with the peer.
    package func pause() {
        guard !isPaused, let context else { return }
        isPaused = true
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
    }

    /// Reads on.
    package func resume() {
        guard isPaused, let context else { return }
        isPaused = false
        hasBeenHeard = true
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let refusal = event as? InboundMeter.Refusal else { return context.fireUserInboundEventTriggered(event) }
        onEvent?(.refused(refusal))
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error as? NIOWebSocketError {
        case .invalidFrameLength?: failDecoding(tooBig)
        case .some: failDecoding(Self.notAFrame)
        case nil:
            // A peer that closes without TLS's goodbye has closed, which is all that matters here.
            if case .truncated? = (error as? TLSError)?.code {} else { finish(.failed(error)) }
            context.close(promise: nil)
        }
    }

    /// The decoder takes nothing more, so that nothing more is to be counted.
    private func failDecoding(_ fault: Fault) {
        meter?.discard()
        fail(fault)
    }

    private static let notAFrame = Fault(code: 1002, description: "not a WebSocket frame")
    private var tooBig: Fault {
        Fault(code: 1009, description: "messages have at most \(settings.messageBytes) bytes")
    }

    private func fail(_ fault: Fault) {
        switch settings.role {
        case .server:
            guard state == .open else { return }
            onEvent?(.fault(code: fault.code))
            close(fault.code, fault.description)
        case .client:
            close(fault.code, fault.description)
            finish(.failed(fault))
            context?.close(promise: nil)
        }
    }

    // MARK: - Out

    /// Sends one text message, in UTF-8; a socket that is closing or closed drops it.
    package func send(_ text: [UInt8]) { send(.text, text) }

    /// Sends one binary message; a socket that is closing or closed drops it.
    package func send(binary: [UInt8]) { send(.binary, binary) }

    private func send(_ opcode: WebSocketOpcode, _ message: [UInt8]) {
        guard state == .open, let context else { return }
        write(opcode, context.channel.allocator.buffer(bytes: message))
    }

    /// Asks the peer for a sign of life.
    package func ping() {
        guard state == .open else { return }
        write(.ping, ByteBuffer())
    }

    /// Our address and port, while there is a connection.
    package var localAddress: NIOCore.SocketAddress? { (channel ?? context?.channel)?.localAddress }

    /// Bytes that wait for the peer to read.
    package var waitingBytes: Int {
        let bytes = try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
        return bytes ?? 0
    }

    /// Begins the closing handshake. ``Event/closed(code:)`` follows when the peer has answered, or its time is up.
    ///
    /// - Parameter text: At most 123 bytes.
    package func close(_ code: UInt16, _ text: String = "") {
        guard state == .open, let context else { return }
        var payload = context.channel.allocator.buffer(capacity: 2 + text.utf8.count)
        payload.writeInteger(code)
        payload.writeString(text)
        write(.connectionClose, payload)
        state = .closing
        callback?.cancel()
        if let time = settings.closingTime { schedule(in: time) }
    }

    /// Closes the connection at once, or gives up the attempt to open it. No event follows.
    package func abandon() {
        onEvent = nil
        isAbandoned = true
        (channel ?? context?.channel)?.close(promise: nil)
    }

    private func answerClose(_ frame: WebSocketFrame) {
        guard let context else { return }
        var payload = frame.unmaskedData
        closeCode = payload.getInteger(at: payload.readerIndex)
        hasSeenClose = true
        if state == .open {
            // The same code back, or none if there was none (RFC 6455 §5.5.1).
            write(.connectionClose, payload.readSlice(length: min(2, payload.readableBytes)) ?? ByteBuffer())
        }
        state = .closing
        context.close(promise: nil)
    }

    private func write(_ opcode: WebSocketOpcode, _ payload: ByteBuffer) {
        guard let context else { return }
        // A client's masks come from the system's random generator (RFC 6455 §5.3).
        let mask = settings.role == .client ? WebSocketMaskingKey.random() : nil
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: mask, data: payload)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if let limit = settings.outboundBytes, !context.channel.isWritable {
            finish(
                .failed(Fault(code: 1008, description: "more than \(limit) bytes wait for a peer that does not read")))
            context.close(promise: nil)
        }
        context.fireChannelWritabilityChanged()
    }

    // MARK: - Time

    private func schedule(in delay: TimeAmount) {
        callback?.cancel()
        callback = context.flatMap { try? $0.eventLoop.assumeIsolated().scheduleCallback(in: delay, handler: self) }
    }

    /// Sends the ping of a new interval, unless nothing has come in the one before.
    package func handleScheduledCallback(eventLoop: some EventLoop) {
        guard let context else { return }
        switch (state, settings.keepalive) {
        case (.closing, _), (.open, nil):
            context.close(promise: nil)
        case (.open, .some) where !hasBeenHeard && !isPaused:
            onEvent?(.silent)
            context.close(promise: nil)
        case (.open, let keepalive?):
            hasBeenHeard = false
            write(.ping, ByteBuffer())
            schedule(in: keepalive)
        }
    }

    // MARK: - Opening

    /// Takes the connection that is being established for this socket.
    func attach(to channel: any Channel) throws {
        guard !isAbandoned else { throw ChannelError.ioOnClosedChannel }
        self.channel = channel
    }
}

extension WebSocketFrame {
    /// Its length on the wire (RFC 6455 §5.2).
    fileprivate var wireBytes: Int {
        let lengthField = length > Int(UInt16.max) ? 8 : length > 125 ? 2 : 0
        return 2 + lengthField + (maskKey == nil ? 0 : 4) + length
    }
}
