internal import CRealtime
public import Realtime

/// A bound UDP socket, owned by one thread.
public struct UDPSocket: ~Copyable, Sendable {
    /// The descriptor to poll; readable when datagrams wait.
    public let descriptor: Int32
    /// The address it is bound to, with the port that the system chose if none was asked for.
    public let localAddress: SocketAddress

    /// DSCP "expedited forwarding", for interactive voice (RFC 8837).
    public static let expeditedForwarding: Int32 = 46

    /// Opens and binds a socket.
    ///
    /// - Parameters:
    ///   - address: Where to bind; port 0 lets the system choose.
    ///   - receiveBufferBytes: Kernel buffer to ask for; it must hold what arrives between two reads.
    public init(boundTo address: SocketAddress, receiveBufferBytes: Int32 = 1 << 20) throws(RealtimeError) {
        descriptor = handset_udp_open(address.raw, receiveBufferBytes, Self.expeditedForwarding)
        guard descriptor >= 0 else {
            throw RealtimeError(doing: "binding UDP socket \(address)", errno: -descriptor)
        }
        var bound = handset_address()
        _ = unsafe handset_local_address(descriptor, &bound)
        localAddress = SocketAddress(bound)
    }

    deinit { handset_close(descriptor) }

    /// Replaces what `batch` holds with the datagrams that wait, as many as fit; never blocks.
    ///
    /// - Returns: 0, or the error number of a failed read.
    @_noAllocation @_noLocks
    public func receive(into batch: inout DatagramBatch) -> Int32 {
        for index in 0..<DatagramBatch.capacity {
            unsafe batch.datagrams[index].length = UInt32(DatagramBatch.slotBytes)
        }
        let received = unsafe receiveDatagrams(descriptor, batch.datagrams)
        batch.count = max(0, Int(received))
        return min(0, received)
    }

    /// Sends all datagrams of `batch` and empties it.
    ///
    /// - Returns: How many the kernel did not take; they are gone.
    @_noAllocation @_noLocks
    public func send(_ batch: inout DatagramBatch) -> Int {
        guard batch.count > 0 else { return 0 }
        let dropped = unsafe sendDatagrams(descriptor, batch.datagrams, Int32(truncatingIfNeeded: batch.count))
        batch.count = 0
        return dropped
    }
}

// recvmmsg(2) on a non-blocking socket.
@_semantics("no_performance_analysis") @inline(__always)
private func receiveDatagrams(_ descriptor: Int32, _ datagrams: UnsafeMutablePointer<handset_datagram>) -> Int32 {
    unsafe handset_receive(descriptor, datagrams, HANDSET_BATCH_LIMIT)
}

// sendmmsg(2) on a non-blocking socket.
@_semantics("no_performance_analysis") @inline(__always)
private func sendDatagrams(_ descriptor: Int32, _ datagrams: UnsafeMutablePointer<handset_datagram>, _ count: Int32)
    -> Int
{
    var failed: Int32 = 0
    let sent = unsafe handset_send(descriptor, datagrams, count, &failed)
    return Int(count - sent + failed)
}
