internal import Core

/// Where the packets of a call without ICE may come from (symmetric RTP, RFC 4961).
///
/// Protected packets may come from anywhere, because their keys identify the sender. Without protection anyone can
/// send, so the call accepts one address only, and an address may take over from one that is less likely the peer's:
///
/// 1. The address in the peer's description, whenever packets come from it.
/// 2. Another port of that host, or the host that the peer's signaling came from (a telephone behind a translator), while
///    the described address is silent.
/// 3. Any other address, while both are silent. It is a guess, which ends 10 s after its last packet: then the described
///    address is in use again.
///
/// Another address of the same kind, or of a less likely one, takes over after a second of silence, and, once 1 or 2 has been
/// heard, only with the stream that was heard. A later description with another address begins this again, and packets that are still on their
/// way from the former address count as strange.
struct AddressLatch: BitwiseCopyable {
    private let signaled: SocketAddress
    /// The host of the peer's signaling; its port means nothing.
    private let signaling: SocketAddress?
    private let startedAt: Instant
    /// Where the peer sent from before its description named this address.
    private let former: SocketAddress?
    /// How likely the address that was heard last is the peer's; nil before the first packet.
    private var heard: Origin?
    private var heardAt = Instant(nanoseconds: 0)
    /// An address of the first two kinds has been heard.
    private var hasHeardPeer = false

    /// How likely an address is the peer's, the likeliest last.
    private enum Origin: Int, BitwiseCopyable {
        /// Any host.
        case stranger
        /// The described host, or the host of the signaling.
        case near
        /// The described address.
        case described
    }

    /// What becomes of a packet without protection.
    enum Verdict: BitwiseCopyable {
        case refused
        case accepted
        /// It comes from a likelier address than packets before: what came from there was not the peer's.
        case displaces
    }

    /// How long the address in use must be silent before another replaces it: a peer behind a NAT that lost its binding
    /// is accepted again after a second, and a stranger cannot take over a peer that sends.
    static var silenceNanoseconds: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }
    /// Packets of a call that has just ended may still be on their way to our port.
    private static var cautionNanoseconds: Int64 { @_noAllocation @_noLocks get { 200_000_000 } }
    /// How long a guess lasts after its last packet: two intervals of RTCP.
    static var guessNanoseconds: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }

    /// - Parameters:
    ///   - former: Where the peer was before a later description; nil for the first.
    @_noAllocation @_noLocks
    init(
        _ signaled: SocketAddress, signaling: SocketAddress?, inPlaceOf former: SocketAddress? = nil, at now: Instant
    ) {
        self.signaled = signaled
        self.signaling = signaling
        self.former = former
        startedAt = now
    }

    /// The address in the peer's description.
    var described: SocketAddress {
        @_noAllocation @_noLocks get { signaled }
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

    /// Whether an address belongs to the described host, or to the host of the signaling.
    @_noAllocation @_noLocks
    func isNear(_ source: SocketAddress) -> Bool {
        if source.hasSameHost(as: signaled) { return true }
        guard let signaling else { return false }
        return source.hasSameHost(as: signaling)
    }

    @_noAllocation @_noLocks
    private func origin(of source: SocketAddress) -> Origin {
        if source.isSame(as: signaled) { return .described }
        return isNear(source) ? .near : .stranger
    }

    /// Whether a packet without protection is taken for the peer's.
    ///
    /// - Parameters:
    ///   - current: The address that our packets go to.
    ///   - isOfStream: It has the SSRC that the peer is known to send with.
    @_noAllocation @_noLocks
    func judge(_ source: SocketAddress, current: SocketAddress, isOfStream: Bool, at now: Instant) -> Verdict {
        let origin = origin(of: source)
        guard let heard else {
            if isLate(source, at: now) { return .refused }
            if isOfStream || origin.rawValue >= Origin.near.rawValue { return .accepted }
            let isCautious = hasHeardPeer || startedAt.nanoseconds(to: now) < Self.cautionNanoseconds
            return isCautious ? .refused : .accepted
        }
        if source.isSame(as: current) { return .accepted }
        if isLate(source, at: now) { return .refused }
        if origin.rawValue > heard.rawValue { return .displaces }
        guard heardAt.nanoseconds(to: now) >= Self.silenceNanoseconds else { return .refused }
        return isOfStream || !hasHeardPeer ? .accepted : .refused
    }

    /// Whether RTCP without protection counts as the peer's: from the port of its media, or from another port of the
    /// same host.
    @_noAllocation @_noLocks
    func acceptsControl(_ source: SocketAddress, current: SocketAddress, control: SocketAddress?) -> Bool {
        if let control, source.hasSameHost(as: control) { return true }
        return source.hasSameHost(as: current) || isNear(source)
    }

    /// A media packet of the peer has been taken.
    @_noAllocation @_noLocks
    mutating func heard(_ source: SocketAddress, at now: Instant) {
        let origin = origin(of: source)
        heard = origin
        heardAt = now
        if origin.rawValue >= Origin.near.rawValue { hasHeardPeer = true }
    }

    /// RTCP has come from the address in use.
    @_noAllocation @_noLocks
    mutating func heardControl(at now: Instant) { if case .stranger? = heard { heardAt = now } }

    /// Ends a guess whose address has fallen silent.
    ///
    /// - Returns: Whether one has ended, so that the described address is in use again.
    @_noAllocation @_noLocks
    mutating func endGuess(at now: Instant) -> Bool {
        guard case .stranger? = heard, heardAt.nanoseconds(to: now) >= Self.guessNanoseconds else { return false }
        heard = nil
        return true
    }
}
