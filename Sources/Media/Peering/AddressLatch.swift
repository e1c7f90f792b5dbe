internal import NetworkAddress
internal import Timekeeping

/// Where the packets of a call without ICE may come from (symmetric RTP, RFC 4961).
///
/// Protected packets may come from anywhere, because their keys identify the sender. Without protection anyone can
/// send, so the call accepts one address only: first the one in the peer's description, or another until packets come
/// from that one; later another only after the address in use has been silent for a second. A later description with another
/// address begins this again, and packets that are still on their way from the former address count as strange.
struct AddressLatch: BitwiseCopyable {
    private let signaled: SocketAddress
    private let startedAt: Instant
    /// Where the peer sent from before its description named this address.
    private let former: SocketAddress?
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
        former = nil
        startedAt = now
    }

    /// The latch after a later description.
    @_noAllocation @_noLocks
    init(_ signaled: SocketAddress, inPlaceOf former: SocketAddress?, at now: Instant) {
        self.signaled = signaled
        self.former = former
        startedAt = now
    }

    /// Whether the peer's description names this address.
    @_noAllocation @_noLocks
    func isFor(_ address: SocketAddress) -> Bool { signaled.isSame(as: address) }

    /// Whether a packet comes from where the peer was before, and was most likely sent before it moved.
    @_noAllocation @_noLocks
    func isLate(_ source: SocketAddress, at now: Instant) -> Bool {
        guard let former, former.isSame(as: source), !former.isSame(as: signaled) else { return false }
        return startedAt.nanoseconds(to: now) < Self.silenceNanoseconds
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
        if isLate(source, at: now) { return false }
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
