package import NIOCore
internal import NIOTLS
package import TLS

/// TLS in a channel's pipeline: everything behind it sees plain bytes, and `TLSUserEvent.handshakeCompleted`.
///
/// What is written before the handshake is complete waits for it. A close sends close_notify and waits for the peer's for
/// ``closingTime``; a second close does not wait. A peer that closes without close_notify causes a ``TLSError`` with the code
/// `truncated`, or `closedInHandshake`, and then the end.
final class TLSHandler: ChannelDuplexHandler, RemovableChannelHandler, NIOScheduledCallbackHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How long the peer may take to answer close_notify.
    static let closingTime = TimeAmount.seconds(5)

    private enum State {
        case shakingHands
        case open
        /// close_notify has been sent; the promise is that of the close.
        case closing(EventLoopPromise<Void>?)
        /// Nothing more passes.
        case finished
    }

    private struct Waiting {
        let bytes: ByteBuffer
        let promise: EventLoopPromise<Void>?
    }

    private var session: TLSSession
    private var state = State.shakingHands
    private var waiting: [Waiting] = []
    private var timer: NIOScheduledCallback?
    private var context: ChannelHandlerContext?

    init(_ session: consuming TLSSession) { self.session = session }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { transmit(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        finish(ChannelError.eof)
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        transmit(context)
        context.fireChannelActive()
    }

    // MARK: Inbound

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .finished = state { return }
        var plain: [UInt8] = []
        var failure: TLSError?
        let bytes = unwrapInboundIn(data)
        do throws(TLSError) {
            try session.receive(bytes.readableBytesUInt8Span, into: &plain)
        } catch {
            failure = error
        }
        transmit(context)
        if case .shakingHands = state, session.isOpen {
            state = .open
            context.fireUserInboundEventTriggered(
                TLSUserEvent.handshakeCompleted(negotiatedProtocol: session.negotiatedProtocol))
            encrypt(context)
        }
        // Each of these may have closed the channel.
        if case .open = state, !plain.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: plain))) }
        if let failure { return fail(failure, context) }
        if session.hasEnded { receivedEnd(context) }
    }

    /// The peer has sent close_notify.
    private func receivedEnd(_ context: ChannelHandlerContext) {
        switch state {
        case .shakingHands, .open:
            session.close()
            transmit(context)
            close(context, nil)
        case .closing(let promise): close(context, promise)
        case .finished: break
        }
    }

    private func fail(_ error: TLSError, _ context: ChannelHandlerContext) {
        switch state {
        case .shakingHands, .open:
            finish(error)
            context.fireErrorCaught(error)
            context.close(promise: nil)
        case .closing(let promise): close(context, promise)
        case .finished: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        let former = state
        var failure: TLSError?
        if case .closing(let promise) = former { promise?.succeed() }
        do throws(TLSError) { try session.receiveEnd() } catch { failure = error }
        finish(failure ?? ChannelError.eof)
        switch former {
        case .shakingHands, .open: if let failure { context.fireErrorCaught(failure) }
        case .closing, .finished: break
        }
        context.fireChannelInactive()
    }

    // MARK: Outbound

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch state {
        case .shakingHands, .open: waiting.append(Waiting(bytes: unwrapOutboundIn(data), promise: promise))
        case .closing, .finished: promise?.fail(ChannelError.ioOnClosedChannel)
        }
    }

    func flush(context: ChannelHandlerContext) {
        encrypt(context)
        context.flush()
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        switch (mode, state) {
        case (.input, _): context.close(mode: .input, promise: promise)
        case (.output, .open):
            encrypt(context)
            session.close()
            transmit(context)
            context.close(mode: .output, promise: promise)
        case (.output, _): context.close(mode: .output, promise: promise)
        case (.all, .open):
            encrypt(context)
            session.close()
            transmit(context)
            if session.hasEnded { return close(context, promise) }
            state = .closing(promise)
            timer = try? context.eventLoop.assumeIsolated().scheduleCallback(in: Self.closingTime, handler: self)
        case (.all, .closing(let earlier)):
            if let earlier, let promise { promise.futureResult.cascade(to: earlier) }
            close(context, promise ?? earlier)
        case (.all, .shakingHands), (.all, .finished): close(context, promise)
        }
    }

    func handleScheduledCallback(eventLoop: some EventLoop) {
        guard let context, case .closing(let promise) = state else { return }
        close(context, promise)
    }

    /// Closes the connection below.
    private func close(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        finish(ChannelError.ioOnClosedChannel)
        context.close(promise: promise)
    }

    /// Nothing more passes: what waits fails with this.
    private func finish(_ error: any Error) {
        state = .finished
        timer?.cancel()
        timer = nil
        let waiting = waiting
        self.waiting = []
        for entry in waiting { entry.promise?.fail(error) }
    }

    /// Encrypts what waits, if the handshake is complete, and sends it in one write.
    private func encrypt(_ context: ChannelHandlerContext) {
        guard case .open = state, !waiting.isEmpty else { return }
        let entries = waiting
        waiting = []
        var failure: TLSError?
        do throws(TLSError) {
            for entry in entries { try session.send(entry.bytes.readableBytesUInt8Span) }
        } catch {
            failure = error
        }
        if let failure {
            for entry in entries { entry.promise?.fail(failure) }
            return fail(failure, context)
        }
        let promises = entries.compactMap(\.promise)
        guard let first = promises.first else { return transmit(context) }
        if promises.count > 1 {
            first.futureResult.whenComplete { result in
                for promise in promises.dropFirst() { promise.completeWith(result) }
            }
        }
        transmit(context, first)
    }

    /// Sends what TLS has to send.
    private func transmit(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>? = nil) {
        var bytes: [UInt8] = []
        session.takeOutgoing(into: &bytes)
        guard !bytes.isEmpty else {
            promise?.succeed()
            return
        }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: promise)
    }
}

extension ChannelPipeline.SynchronousOperations {
    /// Has a connection to a server use TLS.
    ///
    /// - Parameters:
    ///   - host: The configured name or address, which may differ from the address of the connection.
    ///   - protocols: Names of the protocols that the client speaks, the best first (RFC 7301).
    package func addTLS(
        to host: String, trusting trust: TLSTrust, check: TLSSession.Check = .name, protocols: [String] = []
    ) throws {
        try addTLS(to: host, in: try trust.context(), check: check, protocols: protocols)
    }

    /// Has a connection to a server use TLS.
    package func addTLS(
        to host: String, in context: TLSContext, check: TLSSession.Check = .name, protocols: [String] = []
    ) throws {
        try addHandler(TLSHandler(try TLSSession(to: host, in: context, check: check, protocols: protocols)))
    }

    /// Has a connection of a client use TLS.
    package func addTLS(_ context: TLSContext) throws { try addHandler(TLSHandler(try TLSSession(of: context))) }
}
