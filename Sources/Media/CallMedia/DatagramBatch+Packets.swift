internal import Realtime

// Packets of calls, which a TURN server's channel data may wrap. The batch has room for them.
extension DatagramBatch {
    /// The next free slot behind what the path needs in front, to be written and then kept with
    /// ``commitPacket(byteCount:by:)``.
    @_noAllocation @_noLocks
    @_lifetime(&self)
    mutating func freePacket(by path: MediaPath) -> MutableRawSpan { freeSlot(after: path.prefixBytes) }

    /// Keeps a packet of `byteCount` bytes that was written into ``freePacket(by:)``.
    ///
    /// - Returns: Whether there is one: nothing is kept if it is empty.
    @_noAllocation @_noLocks @discardableResult
    mutating func commitPacket(byteCount: Int, by path: MediaPath) -> Bool {
        guard byteCount > 0 else { return false }
        var slot = freeSlot()
        path.writePrefix(length: byteCount, into: &slot)
        commit(byteCount: path.prefixBytes + byteCount, by: path.datagrams)
        return true
    }
}
