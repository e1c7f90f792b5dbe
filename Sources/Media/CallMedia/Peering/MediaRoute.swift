internal import Realtime
internal import Core

/// The way of a call's media and of its RTCP, and where the peer's packets may come from.
///
/// Without ICE the peer's address follows its authenticated packets (symmetric RTP, RFC 4961), so that a peer behind a
/// translator is reached, and without protection only as ``AddressLatch`` allows; with ICE, media goes the way that ICE
/// selects. A later description may name another address of the peer.
struct MediaRoute: BitwiseCopyable {
    /// The way of our media; nil while there is none.
    private(set) var path: MediaPath?
    /// The call's own sockets, if it has any.
    let sockets: CallSockets?
    private let signaling: SocketAddress?
    private var reach: Reach
    private var control: Control

    /// How the peer is reached.
    private enum Reach: BitwiseCopyable {
        /// By the path that ICE selects.
        case selected
        /// Where its authenticated packets come from.
        case followed
        /// The same, and at first at the address in its description.
        case described(AddressLatch)
    }

    /// Where RTCP goes.
    private enum Control: BitwiseCopyable {
        case withMedia
        case separate(MediaPath)
        case none
    }

    init(_ plan: PeerPlan, at now: Instant) {
        sockets = plan.sockets
        signaling = plan.signalingSource
        switch plan.transport {
        case .direct(let remote, let address):
            path = MediaPath(Self.path(to: remote, by: plan.sockets))
            reach = .described(AddressLatch(remote, signaling: plan.signalingSource, at: now))
            control = address.map { .separate(MediaPath(Self.path(to: $0, by: plan.sockets))) } ?? .withMedia
        case .connected: (reach, control) = (.selected, .withMedia)
        case .handshaken(let hasControl): (reach, control) = (.followed, hasControl ? .withMedia : .none)
        }
    }

    /// The way to an address through the call's own socket of its family, or else through the one that all calls share.
    @_noAllocation @_noLocks
    private static func path(to remote: SocketAddress, by sockets: CallSockets?) -> DatagramPath {
        guard let slot = sockets?.slot(isIPv6: remote.isIPv6) else { return DatagramPath(to: remote) }
        return DatagramPath(socket: slot, local: nil, remote: remote)
    }

    /// The address that the peer's description names, of a call without ICE.
    var describedAddress: SocketAddress? {
        @_noAllocation @_noLocks get {
            guard case .described(let latch) = reach else { return nil }
            return latch.described
        }
    }

    /// The way of RTCP: with the media, wherever that has moved to, unless the peer asked otherwise.
    var controlPath: MediaPath? {
        @_noAllocation @_noLocks get {
            switch control {
            case .withMedia: path
            case .separate(let path): path
            case .none: nil
            }
        }
    }

    /// Where the peer's RTCP comes from, if that is another address than its media's.
    var separateControlAddress: SocketAddress? {
        @_noAllocation @_noLocks get {
            guard case .separate(let path) = control else { return nil }
            return path.datagrams.remote
        }
    }

    /// Sends by another way from now on, or by none.
    @_noAllocation @_noLocks
    mutating func use(_ path: MediaPath?) { self.path = path }

    /// Sends to where a later description wants media, and listens for the peer there; with ICE nothing changes.
    ///
    /// - Parameter newControl: Where the peer wants its RTCP; nil with its media.
    /// - Returns: Whether the path has changed.
    @_noAllocation @_noLocks
    mutating func redirect(to remote: SocketAddress, control newControl: SocketAddress?, at now: Instant) -> Bool {
        switch reach {
        case .selected: return false
        case .followed: break
        case .described(let latch):
            // The same again: a peer behind a translator stays where its packets come from.
            if latch.isFor(remote) {
                setControl(newControl)
                return false
            }
        }
        guard let path else { return false }
        let before = path.datagrams
        // A call with a handshake has sockets of its own, one for each family; of the other family's nothing is known here.
        if case .followed = reach, before.remote.isIPv6 != remote.isIPv6 { return false }
        reach = .described(AddressLatch(remote, signaling: signaling, inPlaceOf: before.remote, at: now))
        setControl(newControl)
        // The route chooses the local address that reaches the new one.
        self.path =
            before.remote.isIPv6 == remote.isIPv6
            ? MediaPath(DatagramPath(socket: before.socket, local: nil, remote: remote))
            : MediaPath(Self.path(to: remote, by: sockets))
        return true
    }

    @_noAllocation @_noLocks
    private mutating func setControl(_ address: SocketAddress?) {
        if case .none = control { return }
        if let address {
            control = .separate(MediaPath(Self.path(to: address, by: sockets)))
        } else {
            control = .withMedia
        }
    }

    /// The network has changed, and our address may be gone with which packets leave: the route chooses one until the next packet
    /// of the peer shows which address it writes to.
    @_noAllocation @_noLocks
    mutating func releaseLocalAddress() {
        if case .selected = reach { return }
        guard var path else { return }
        path.datagrams.local = nil
        self.path = path
        guard case .separate(var separate) = control else { return }
        separate.datagrams.local = nil
        control = .separate(separate)
    }

    /// Whether a media packet without protection comes from an address that the peer may send from; ICE's paths are not
    /// known here. Changes nothing: it is mutating because borrowing the route may copy it.
    ///
    /// - Parameter isOfStream: It has the SSRC that the peer is known to send with.
    @_noAllocation @_noLocks
    mutating func judgeMedia(
        from source: SocketAddress, isOfStream: Bool, at arrival: Instant
    ) -> AddressLatch.Verdict {
        guard case .described(let latch) = reach, let path else { return .accepted }
        return latch.judge(source, current: path.datagrams.remote, isOfStream: isOfStream, at: arrival)
    }

    /// The same for RTCP.
    @_noAllocation @_noLocks
    mutating func acceptsControl(from source: SocketAddress, at arrival: Instant) -> Bool {
        guard case .described(var latch) = reach, let path else { return true }
        let current = path.datagrams.remote
        guard latch.acceptsControl(source, current: current, control: separateControlAddress) else { return false }
        if source.hasSameHost(as: current) {
            latch.heardControl(at: arrival)
            reach = .described(latch)
        }
        return true
    }

    /// Whether nothing but its packets says that the peer is there.
    @_noAllocation @_noLocks
    func isGuess(_ source: SocketAddress) -> Bool {
        guard case .described(let latch) = reach else { return false }
        return !latch.isNear(source)
    }

    /// Returns to the described address once a guess has fallen silent.
    ///
    /// - Returns: Whether the path has changed.
    @_noAllocation @_noLocks
    mutating func endGuess(at now: Instant) -> Bool {
        guard case .described(var latch) = reach, latch.endGuess(at: now) else { return false }
        reach = .described(latch)
        path = MediaPath(Self.path(to: latch.described, by: sockets))
        return true
    }

    /// Lets the path follow a packet of the peer that is newer than all before.
    ///
    /// - Returns: Whether the path has changed.
    @_noAllocation @_noLocks
    mutating func follow(_ origin: DatagramPath, at arrival: Instant) -> Bool {
        guard let path else { return false }
        switch reach {
        case .selected: return false
        case .followed: break
        case .described(var latch):
            if latch.isLate(origin.remote, at: arrival) { return false }
            latch.heard(origin.remote, at: arrival)
            reach = .described(latch)
        }
        guard !path.datagrams.remote.isSame(as: origin.remote) || hasOtherLocal(origin, than: path) else {
            return false
        }
        // Answers leave from the address that was written to.
        self.path = MediaPath(origin)
        return true
    }

    /// Whether the peer writes to another local address than before: the one before may be gone.
    @_noAllocation @_noLocks
    private func hasOtherLocal(_ origin: DatagramPath, than path: MediaPath) -> Bool {
        guard let new = origin.local else { return false }
        guard let old = path.datagrams.local else { return true }
        return !old.hasSameHost(as: new)
    }
}
