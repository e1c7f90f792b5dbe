import ExchangeCore
import NIOCore

/// Sees how much waits for a client that does not read, and drops it when that is too much.
///
/// Stands at the front of each connection's pipeline, before TLS, so that it sees what is sent as the socket does.
final class OutboundMeter: ChannelDuplexHandler {
    typealias InboundIn = NIOAny
    typealias OutboundIn = NIOAny

    /// Bytes that may wait for one client; past the high mark it is dropped.
    static let limit = ChannelOptions.Types.WriteBufferWaterMark(low: 256 << 10, high: 1 << 20)

    private let desk: SendBufferDesk
    private var context: ChannelHandlerContext?
    /// Who pays for what waits.
    var payer = Payer.strangers

    init(_ desk: SendBufferDesk) { self.desk = desk }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        desk.forget(self)
    }

    func channelInactive(context: ChannelHandlerContext) {
        desk.forget(self)
        context.fireChannelInactive()
    }

    /// Bytes that wait now.
    var waiting: Int {
        let bytes = try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
        return bytes ?? 0
    }

    func flush(context: ChannelHandlerContext) {
        context.flush()
        // Nearly always all of it is with the kernel by now.
        guard self.context != nil else { return }
        desk.note(waiting, of: self)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !context.channel.isWritable { drop() }
        context.fireChannelWritabilityChanged()
    }

    /// Closes the connection: its client does not read.
    func drop() {
        desk.countDropped()
        context?.close(promise: nil)
    }
}

/// Keeps in mind what waits for whom, and asks the connection to close that must go.
///
/// Lives on the hub's event loop.
final class SendBufferDesk {
    private var buffers: SendBuffers<ObjectIdentifier>
    private var meters: [ObjectIdentifier: OutboundMeter] = [:]
    /// Connections that were dropped since their client did not read.
    private(set) var dropped = 0

    init(_ limits: SendBuffers<ObjectIdentifier>.Limits) { buffers = SendBuffers(limits) }

    /// Bytes that wait in all, at most.
    var total: Int { buffers.total }

    /// So much waits for a connection.
    func note(_ bytes: Int, of meter: OutboundMeter) {
        let id = ObjectIdentifier(meter)
        guard bytes > 0 || meters[id] != nil else { return }
        buffers.set(id, bytes, of: meter.payer)
        meters[id] = bytes > 0 ? meter : nil
        guard buffers.isOver(meter.payer) else { return }
        // Some have read on since they were looked at.
        for (id, meter) in meters {
            let bytes = meter.waiting
            buffers.measure(id, bytes)
            if bytes == 0 { meters[id] = nil }
        }
        guard buffers.isOver(meter.payer) else { return }
        while let loser = buffers.loser(after: meter.payer) {
            buffers.measure(loser, 0)
            meters.removeValue(forKey: loser)?.drop()
        }
    }

    /// A connection is closed.
    func forget(_ meter: OutboundMeter) {
        let id = ObjectIdentifier(meter)
        guard meters.removeValue(forKey: id) != nil else { return }
        buffers.measure(id, 0)
    }

    func countDropped() { dropped += 1 }
}
