internal import Glibc
package import NIOCore

/// Notified of connections that could not be accepted. On the listener's event loop.
package protocol AcceptWatch: AnyObject {
    /// A connection could not be accepted, because there is no descriptor or memory for it.
    func failedToAccept(_ error: IOError)
    /// A client was refused: its connection was closed at once.
    func countShed()
}

/// Precedes the handler that sets up accepted connections, and waits while no descriptor is free.
///
/// NIO itself retries at once when `accept` fails, for ever: the listening socket stays readable, and NIO's own handler
/// for this waits only with the next read, which a failed one does not request.
final class AcceptGate: ChannelInboundHandler, NIOScheduledCallbackHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel

    private let watch: any AcceptWatch
    private var backoff = AcceptBackoff()
    private var reserve = ReserveDescriptor()
    /// The reserve was given up for the connection that comes next.
    private var isShedding = false
    private var callback: NIOScheduledCallback?
    private var context: ChannelHandlerContext?

    init(_ watch: any AcceptWatch) { self.watch = watch }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        reserve.take()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        callback?.cancel()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        if isShedding {
            isShedding = false
            channel.close(promise: nil)
            reserve.take()
            return watch.countShed()
        }
        backoff.succeeded()
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, Self.shortages.contains(error.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        watch.failedToAccept(error)
        // Other code took the reserve's descriptor first, or descriptors were not what is short.
        let wasInVain = isShedding
        isShedding = false
        if wasInVain { reserve.take() }
        switch backoff.failed(hasReserve: reserve.isHeld && !wasInVain) {
        case .shed:
            reserve.give()
            isShedding = true
        case .pause(let time): pause(time, context)
        }
    }

    private func pause(_ time: Duration, _ context: ChannelHandlerContext) {
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        callback = try? context.eventLoop.assumeIsolated().scheduleCallback(in: TimeAmount(time), handler: self)
    }

    func handleScheduledCallback(eventLoop: some EventLoop) {
        guard let context else { return }
        reserve.take()
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    /// What `accept` says when the process or the machine has too little for another connection.
    private static let shortages = [EMFILE, ENFILE, ENOBUFS, ENOMEM]
}
