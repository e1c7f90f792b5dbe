package import Realtime
internal import Core

/// A datagram that is not media (STUN, DTLS, a TURN server's), on its way from a worker to the connection thread.
package struct ForwardedDatagram: BitwiseCopyable {
    /// Longer ones are dropped: DTLS keeps within a network's packet (RFC 6347 §4.1.1), and so does STUN.
    static var capacity: Int {
        @_noAllocation @_noLocks get { 1_500 }
    }

    /// The way back to where it came from.
    package var origin: DatagramPath
    private var length: Int
    private var memory = InlineArray<1_500, UInt8>(repeating: 0)

    /// Copies a datagram; nil if it is too long.
    @_noAllocation @_noLocks
    package init?(_ datagram: borrowing MutableRawSpan, from origin: DatagramPath) {
        guard datagram.byteCount <= Self.capacity else { return nil }
        self.origin = origin
        length = datagram.byteCount
        for index in 0..<length { memory[index] = byte(datagram, index) }
    }

    /// What was received.
    var bytes: [UInt8] { (0..<length).map { memory[$0] } }
}

// Looks at a datagram without changing it; see `senderSSRC` in WorkerLoop.swift.
@_semantics("no_performance_analysis") @inline(__always)
private func byte(_ datagram: borrowing MutableRawSpan, _ index: Int) -> UInt8 {
    unsafe datagram.unsafeLoad(fromByteOffset: index, as: UInt8.self)
}
