package import NIOCore

/// Closes connections that take too long over a request, so that slow senders hold nothing (slow loris).
///
/// Its place is at the front of each connection's pipeline, TLS handshake included, until a WebSocket takes over, which
/// has timers of its own.
package final class RequestTimer: ChannelInboundHandler, RemovableChannelHandler, NIOScheduledCallbackHandler {
    package typealias InboundIn = NIOAny

    /// From the connection's or the request's beginning to the request's end.
    package static let requestTime = TimeAmount.seconds(10)
    /// From one response to the next request's beginning.
    package static let idleTime = TimeAmount.seconds(30)
    /// For a client to take an answer.
    package static let answerTime = TimeAmount.seconds(30)
    /// For the rest of a request that has been refused.
    package static let refusalTime = TimeAmount.seconds(2)

    private var context: ChannelHandlerContext?
    private var callback: NIOScheduledCallback?

    package init() {}

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        restart(Self.requestTime)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        callback?.cancel()
        self.context = nil
    }

    package func channelInactive(context: ChannelHandlerContext) {
        callback?.cancel()
        context.fireChannelInactive()
    }

    /// From now on the connection has this much time; `nil`: as much as it likes.
    package func restart(_ time: TimeAmount?) {
        callback?.cancel()
        callback = nil
        guard let time, let context else { return }
        callback = try? context.eventLoop.assumeIsolated().scheduleCallback(in: time, handler: self)
    }

    package func handleScheduledCallback(eventLoop: some EventLoop) { context?.close(promise: nil) }
}
