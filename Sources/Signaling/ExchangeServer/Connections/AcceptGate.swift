import ExchangeCore
internal import Glibc
import NIOCore

/// Stands in front of the handler that sets up accepted connections, and waits while there is no descriptor for any.
///
/// NIO itself tries at once again when `accept` fails, for ever: the listening socket stays readable, and its own handler
/// for this waits only with the next read, which a failed one does not ask for.
final class AcceptGate: ChannelInboundHandler, NIOScheduledCallbackHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel

    private let admission: Admission
    private var backoff = AcceptBackoff()
    private var reserve = ReserveDescriptor()
    /// The reserve was given up for the connection that comes next.
    private var isShedding = false
    private var callback: NIOScheduledCallback?
    private var context: ChannelHandlerContext?

    init(admission: Admission) { self.admission = admission }

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
            return admission.countShed()
        }
        backoff.succeeded()
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, Self.shortages.contains(error.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        admission.failedToAccept(error)
        // Somebody else had the reserve's number first, or it was not what there is too little of.
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
