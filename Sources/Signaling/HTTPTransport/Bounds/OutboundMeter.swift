package import NIOCore

/// Notified how many bytes wait for one client that reads slowly. On the connection's event loop.
package protocol OutboundWatch: AnyObject {
    /// `bytes` wait for the client; called after sending while bytes wait, and once when none do any more.
    func note(_ bytes: Int, of meter: OutboundMeter)
    /// Nothing waits any more: the connection is closed.
    func forget(_ meter: OutboundMeter)
    /// The connection is closed because its client does not read.
    func countDropped()
}

/// Measures how many bytes wait for a client that does not read, and drops it when they are too many.
///
/// Its place is at the front of each connection's pipeline, before TLS, so that it measures what is sent as the socket
/// does.
package final class OutboundMeter: ChannelDuplexHandler {
    package typealias InboundIn = NIOAny
    package typealias OutboundIn = NIOAny

    /// Bytes that may wait for one client; past them it is dropped.
    static let mostBytes = 1 << 20
    static let limit = ChannelOptions.Types.WriteBufferWaterMark(low: mostBytes / 4, high: mostBytes)

    private let watch: any OutboundWatch
    private var context: ChannelHandlerContext?
    /// The last notification reported waiting bytes.
    private var isNoted = false

    /// - Parameter watch: Enforces limits that apply to several connections together.
    package init(_ watch: any OutboundWatch) { self.watch = watch }

    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        watch.forget(self)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        watch.forget(self)
        context.fireChannelInactive()
    }

    /// Bytes that wait now.
    package var waiting: Int {
        let bytes = try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
        return bytes ?? 0
    }

    package func flush(context: ChannelHandlerContext) {
        context.flush()
        // Nearly always all of it is with the kernel by now.
        guard self.context != nil else { return }
        let bytes = waiting
        guard bytes > 0 || isNoted else { return }
        isNoted = bytes > 0
        watch.note(bytes, of: self)
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !context.channel.isWritable { drop() }
        context.fireChannelWritabilityChanged()
    }

    /// Closes the connection: its client does not read.
    package func drop() {
        watch.countDropped()
        context?.close(promise: nil)
    }
}
