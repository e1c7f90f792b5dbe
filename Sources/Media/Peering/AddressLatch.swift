internal import NetworkAddress
internal import Timekeeping

/// Where the packets of a call without ICE may come from (symmetric RTP, RFC 4961).
///
/// Protected packets may come from anywhere, because their keys identify the sender. Without protection anyone can
/// send, so the call accepts one address only: first the one in the peer's description, or another until packets come
/// from that one; later another only after the address in use has been silent for a second.
struct AddressLatch: BitwiseCopyable {
    private let signaled: SocketAddress
    private let startedAt: Instant
    private var hasHeardSignaled = false
    private var hasHeard = false
    private var heardAt = Instant(nanoseconds: 0)

    /// How long the address in use must be silent before another replaces it: a peer behind a NAT that lost its binding
    /// is accepted again after a second, and a stranger cannot take over a peer that sends.
    private static var silenceNanoseconds: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }
    /// Packets of a call that has just ended may still be on their way to our port.
    private static var cautionNanoseconds: Int64 { @_noAllocation @_noLocks get { 200_000_000 } }

    init(_ signaled: SocketAddress, at now: Instant) {
        self.signaled = signaled
        startedAt = now
    }

    /// Whether a packet without protection is taken for the peer's.
    ///
    /// - Parameters:
    ///   - current: The address that our packets go to.
    ///   - isOfStream: It has the SSRC that the peer is known to send with.
    @_noAllocation @_noLocks
    func accepts(
        _ source: SocketAddress, current: SocketAddress, isOfStream: Bool, at now: Instant
    ) -> Bool {
        if source.isSame(as: current) { return true }
        // A translator or a stranger was there before the peer.
        if !hasHeardSignaled, source.isSame(as: signaled) { return true }
        if hasHeard { return isOfStream && heardAt.nanoseconds(to: now) >= Self.silenceNanoseconds }
        return isOfStream || source.hasSameHost(as: signaled)
            || startedAt.nanoseconds(to: now) >= Self.cautionNanoseconds
    }

    /// Whether RTCP without protection counts as the peer's: from the port of its media, or from another port of the
    /// same host.
    @_noAllocation @_noLocks
    func acceptsControl(_ source: SocketAddress, current: SocketAddress, control: SocketAddress?) -> Bool {
        if let control, source.hasSameHost(as: control) { return true }
        return source.hasSameHost(as: current) || source.hasSameHost(as: signaled)
    }

    /// A media packet of the peer has been taken.
    @_noAllocation @_noLocks
    mutating func heard(_ source: SocketAddress, at now: Instant) {
        hasHeard = true
        heardAt = now
        if source.isSame(as: signaled) { hasHeardSignaled = true }
    }
}
