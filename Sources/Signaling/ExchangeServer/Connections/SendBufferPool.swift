import ExchangeCore
import HTTPTransport

/// What waits for one connection's client, and who pays for it.
final class SendBufferShare: OutboundWatch {
    private let pool: SendBufferPool
    /// Drops the connection; nil until something waits.
    private weak var meter: OutboundMeter?
    /// Who pays for what waits.
    var payer = Payer.strangers

    init(_ pool: SendBufferPool) { self.pool = pool }

    func note(_ bytes: Int, of meter: OutboundMeter) {
        self.meter = meter
        pool.note(bytes, of: self)
    }

    func forget(_ meter: OutboundMeter) { pool.forget(self) }

    func countDropped() { pool.countDropped() }

    /// Bytes that wait now.
    var waiting: Int { meter?.waiting ?? 0 }

    /// Closes the connection: its client does not read.
    func drop() { meter?.drop() }
}

/// Tracks the bytes that wait for each connection, and asks the connection that must close to do so.
///
/// Lives on the hub's event loop.
final class SendBufferPool {
    private var buffers: SendBuffers<ObjectIdentifier>
    private var shares: [ObjectIdentifier: SendBufferShare] = [:]
    /// Connections that were dropped since their client did not read.
    private(set) var dropped = 0

    init(_ limits: SendBuffers<ObjectIdentifier>.Limits) { buffers = SendBuffers(limits) }

    /// Bytes that wait in all, at most.
    var total: Int { buffers.total }

    /// Sets the number of bytes that wait for a connection.
    func note(_ bytes: Int, of share: SendBufferShare) {
        let id = ObjectIdentifier(share)
        guard bytes > 0 || shares[id] != nil else { return }
        buffers.set(id, bytes, of: share.payer)
        shares[id] = bytes > 0 ? share : nil
        guard buffers.isOver(share.payer) else { return }
        // Some have read on since they were looked at.
        for (id, share) in shares {
            let bytes = share.waiting
            buffers.measure(id, bytes)
            if bytes == 0 { shares[id] = nil }
        }
        guard buffers.isOver(share.payer) else { return }
        while let loser = buffers.loser(after: share.payer) {
            buffers.measure(loser, 0)
            shares.removeValue(forKey: loser)?.drop()
        }
    }

    /// A connection is closed.
    func forget(_ share: SendBufferShare) {
        let id = ObjectIdentifier(share)
        guard shares.removeValue(forKey: id) != nil else { return }
        buffers.measure(id, 0)
    }

    func countDropped() { dropped += 1 }
}
