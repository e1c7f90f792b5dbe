internal import Glibc
internal import Logging
internal import NIOCore

/// Accepts no clients for one second if there is no descriptor for them.
///
/// NIO itself retries at once when `accept` fails, endlessly, because the listening socket stays readable. The log says
/// so once, until a client is accepted.
final class AcceptPause: ChannelInboundHandler, NIOScheduledCallbackHandler {
    typealias InboundIn = any Channel

    private static let time = TimeAmount.seconds(1)
    /// What `accept` says when the process or the machine has too little for another connection.
    private static let shortages = [EMFILE, ENFILE, ENOBUFS, ENOMEM]

    private let logger: Logger
    private var context: ChannelHandlerContext?
    private var callback: NIOScheduledCallback?
    private var isTold = false

    init(logger: Logger) { self.logger = logger }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        callback?.cancel()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        isTold = false
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, Self.shortages.contains(error.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        if !isTold {
            isTold = true
            logger.error(
                """
                The control socket takes no clients, because the process has no descriptor left; raise the limit on open \
                files (LimitNOFILE= in systemd, ulimit -n elsewhere)
                """, metadata: ["error": "\(error)"])
        }
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        callback = try? context.eventLoop.assumeIsolated().scheduleCallback(in: Self.time, handler: self)
    }

    func handleScheduledCallback(eventLoop: some EventLoop) {
        try? context?.channel.syncOptions?.setOption(.autoRead, value: true)
    }
}
