public import Realtime
internal import Core

/// The way of a call's media: a path, and with a TURN server on it the channel that wraps each packet.
@frozen
public struct MediaPath: Hashable, BitwiseCopyable, Sendable {
    /// Through which socket, from which address, and where to: the peer, or the TURN server.
    public var datagrams: DatagramPath
    /// The channel's number, 0x4000…0x4FFF (RFC 8656 §12); nil if the peer is reached without a server.
    public var channel: UInt16?

    /// Makes a path.
    @_noAllocation @_noLocks
    public init(_ datagrams: DatagramPath, channel: UInt16? = nil) {
        self.datagrams = datagrams
        self.channel = channel
    }

    /// Bytes in front of each packet: a channel's number and the packet's length.
    public var prefixBytes: Int {
        @_noAllocation @_noLocks get {
            guard case .some = channel else { return 0 }
            return 4
        }
    }

    /// Writes what goes in front of a packet of `length` bytes (RFC 8656 §12.4).
    @_noAllocation @_noLocks
    public func writePrefix(length: Int, into datagram: inout MutableRawSpan) {
        guard let channel, datagram.byteCount >= 4 else { return }
        datagram.storeBytes(of: channel.bigEndian, toByteOffset: 0, as: UInt16.self)
        datagram.storeBytes(of: UInt16(truncatingIfNeeded: length).bigEndian, toByteOffset: 2, as: UInt16.self)
    }
}

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
