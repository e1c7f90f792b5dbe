import NIOCore

/// Closes connections that take too long over a request, so that slow senders hold nothing (slow loris).
///
/// Stands at the front of each connection's pipeline, TLS handshake included, until a WebSocket takes over, which has
/// timers of its own.
final class RequestTimer: ChannelInboundHandler, RemovableChannelHandler, NIOScheduledCallbackHandler {
    typealias InboundIn = NIOAny

    /// From the connection's or the request's beginning to the request's end.
    static let requestTime = TimeAmount.seconds(10)
    /// From one response to the next request's beginning.
    static let idleTime = TimeAmount.seconds(30)
    /// For a client to take an answer.
    static let answerTime = TimeAmount.seconds(30)
    /// For the rest of a request that has been refused.
    static let refusalTime = TimeAmount.seconds(2)

    private var context: ChannelHandlerContext?
    private var callback: NIOScheduledCallback?

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        restart(Self.requestTime)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        callback?.cancel()
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        callback?.cancel()
        context.fireChannelInactive()
    }

    /// From now on the connection has this much time; `nil`: as much as it likes.
    func restart(_ time: TimeAmount?) {
        callback?.cancel()
        callback = nil
        guard let time, let context else { return }
        callback = try? context.eventLoop.assumeIsolated().scheduleCallback(in: time, handler: self)
    }

    func handleScheduledCallback(eventLoop: some EventLoop) { context?.close(promise: nil) }
}
