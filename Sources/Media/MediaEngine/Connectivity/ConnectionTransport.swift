package import Core
package import CallMedia
package import Realtime
internal import SecureTransport

/// What connections need of a media worker: its sockets, what arrives there that is not media, and its calls, which get
/// paths and keys. For the connection thread; nothing here waits for the network.
package protocol ConnectionTransport: Sendable {
    /// Opens a separate socket for a call, or for a TURN server.
    ///
    /// - Returns: Its slot.
    func openSocket(boundTo address: SocketAddress) throws(RealtimeError) -> Int

    /// Makes a pair of joined sockets, one of which the worker gets, for a TURN server that is reached by a stream.
    ///
    /// - Parameters:
    ///   - bytes: See ``UDPSocket/init(joinedTo:sendBufferBytes:)``.
    ///   - otherEnd: Becomes the caller's.
    /// - Returns: The slot of the worker's.
    func openPair(holdingBack bytes: Int32, otherEnd: inout UDPSocket?) throws(RealtimeError) -> Int

    /// Closes what ``openSocket(boundTo:)`` or ``openPair(holdingBack:otherEnd:)`` opened. Nothing may be sent through the
    /// slot from now on.
    func closeSocket(_ slot: Int)

    /// What the socket in a slot is bound to; nil if there is none.
    func boundAddress(_ slot: Int) -> SocketAddress?

    /// Sends a datagram at once, through the socket in a slot.
    func transmit(_ bytes: [UInt8], by path: DatagramPath)

    /// The next datagram that is not media.
    func nextForwarded() -> ForwardedDatagram?

    /// Gives a call its path, and the round trip that ICE measured on it; nil if there is none.
    func use(_ path: MediaPath?, roundTripNanoseconds: Int64?, for call: MediaCallID)

    /// Gives a call its keys.
    func install(_ keys: consuming SRTPPair, for call: MediaCallID)

    /// A connection is being made: datagrams are handled as they come until it is there, or given up.
    func setConnecting(_ isBeginning: Bool)
}

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
