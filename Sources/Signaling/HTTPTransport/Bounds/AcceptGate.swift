internal import Glibc
package import NIOCore
internal import Files

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

/// What to do when a connection that waits cannot be accepted, because the process or the machine has no descriptor for
/// it.
///
/// With a descriptor in reserve a few clients at a time are refused at once: the reserve is released, the connection
/// accepted and closed, and the reserve opened again. Then, and without a reserve, nothing is accepted for a while: the
/// socket stays readable, so that trying again at once would take a whole core and change nothing.
package struct AcceptBackoff: Hashable, Sendable {
    /// What to do.
    package enum Step: Hashable, Sendable {
        /// Give up the reserve, and close the connection that comes next.
        case shed
        /// Accept nothing for this duration.
        case pause(Duration)
    }

    /// Clients that are refused between two pauses.
    package static let burst = 32
    package static let shortest = Duration.milliseconds(100)
    package static let longest = Duration.seconds(1)

    private var shed = 0
    private var pause = shortest

    /// Begins as if all connections had been accepted.
    package init() {}

    /// A connection could not be accepted.
    ///
    /// - Parameter hasReserve: Whether there is a descriptor in reserve.
    package mutating func failed(hasReserve: Bool) -> Step {
        if hasReserve, shed < Self.burst {
            shed += 1
            return .shed
        }
        shed = 0
        defer { pause = min(pause * 2, Self.longest) }
        return .pause(pause)
    }

    /// A connection was accepted, and there was a descriptor for it.
    package mutating func succeeded() { self = AcceptBackoff() }
}

/// A descriptor that is held for the moment in which there is no other.
package struct ReserveDescriptor: ~Copyable {
    private var file: OpenFile?

    /// Whether there is one.
    var isHeld: Bool { file != nil }

    /// Takes one, if there is one to be had; it is an end of nothing, and costs no more than its number.
    mutating func take() {
        if !isHeld { file = try? OpenFile("/dev/null", O_RDONLY) }
    }

    /// Releases the descriptor, so that other code can use it.
    mutating func give() { file = nil }

    /// How many descriptors this process may have.
    package static var limit: Int {
        var limit = rlimit()
        // The call fills in the one structure that it is given.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
        return Int(clamping: limit.rlim_cur)
    }
}
