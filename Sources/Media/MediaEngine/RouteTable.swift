internal import CallMedia
internal import Realtime
internal import Core

/// Finds the calls that a datagram may belong to, by its sender's address and SSRC.
///
/// A call without ICE has a socket of its own as a rule: what arrives there is offered to no other call. The others share
/// one. Several calls may share one remote address (a peer that, like us, has one socket for all calls), several peers may
/// have chosen the same SSRC, and one call may change its address or its SSRC. So there may be several candidates: the
/// likeliest comes first, and each checks whether the packet is its peer's. A linear scan over packed arrays; 256 calls
/// take some 200 ns.
@safe
struct RouteTable: ~Copyable {
    private struct Route {
        var ssrc: UInt32
        var knowsSSRC: Bool
        /// No media of the peer has come.
        var isFresh: Bool
        var isProtected: Bool
        /// The peer, or its TURN server; nil while there is no path.
        var address: SocketAddress?
        /// Where the peer's RTCP comes from, if that is another address.
        var control: SocketAddress?
        /// What the peer's description names, wherever its packets come from.
        var described: SocketAddress?
        /// The call's own sockets; only what arrives there is its.
        var sockets: CallSockets?
    }

    private let routes: UnsafeMutablePointer<Route>
    private let calls: UnsafeMutablePointer<UnsafeMutablePointer<MediaCall>>
    let capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        unsafe routes = .allocate(capacity: capacity)
        unsafe calls = .allocate(capacity: capacity)
    }

    deinit {
        unsafe routes.deallocate()
        unsafe calls.deallocate()
    }

    /// The call at `index`, below ``count``.
    subscript(index: Int) -> UnsafeMutablePointer<MediaCall> {
        @_noAllocation @_noLocks get { unsafe calls[index] }
    }

    /// The name of the call at `index`.
    @_noAllocation @_noLocks
    func id(at index: Int) -> MediaCallID { unsafe calls[index].pointee.id }

    /// The calls as the sound card's mixer sees them; valid until calls are added or removed.
    var onCard: CardCalls {
        @_noAllocation @_noLocks get { unsafe CardCalls(calls, count: count) }
    }

    /// Adds a call; the caller has checked that there is room.
    @_noAllocation @_noLocks
    mutating func append(_ call: UnsafeMutablePointer<MediaCall>) {
        unsafe calls[count] = call
        unsafe routes[count] = Self.route(of: call)
        count += 1
    }

    /// Removes the call at `index`; the last call moves to its index.
    @_noAllocation @_noLocks
    mutating func remove(at index: Int) {
        count -= 1
        unsafe calls[index] = calls[count]
        unsafe routes[index] = routes[count]
    }

    /// Takes over the address and SSRC that the call at `index` now has.
    @_noAllocation @_noLocks
    mutating func update(_ index: Int) { unsafe routes[index] = Self.route(of: calls[index]) }

    /// The index of the call `id`.
    @_noAllocation @_noLocks
    func index(of id: MediaCallID) -> Int? {
        for index in 0..<count where unsafe calls[index].pointee.id.rawValue == id.rawValue { return index }
        return nil
    }

    /// The index of the call whose media comes through the TURN server at socket `slot` in channel `channel`.
    @_noAllocation @_noLocks
    func index(slot: Int, channel: UInt16) -> Int? {
        for index in 0..<count {
            guard let path = unsafe calls[index].pointee.path, path.datagrams.socket == slot,
                let own = path.channel, own == channel
            else { continue }
            return index
        }
        return nil
    }

    /// The index of the call whose own socket is in `slot`.
    @_noAllocation @_noLocks
    func index(ownSocket slot: Int) -> Int? {
        guard slot >= SocketSet.firstExtraSlot else { return nil }
        for index in 0..<count {
            guard let sockets = unsafe routes[index].sockets, sockets.contains(slot) else { continue }
            return index
        }
        return nil
    }

    /// The calls without sockets of their own that a packet from `source` with `ssrc` may belong to. The address counts before the SSRC.
    ///
    /// A call without protection cannot distinguish its peer's packets from others, so it gets a packet as a guess only
    /// if no other such call could. The address that its peer's description names counts as the peer's as long as the call
    /// lasts, and so do other ports of that host if no other call is likelier: packets from elsewhere may have come first.
    ///
    /// - Parameter turn: A different number for each datagram: if more equally likely calls exist than fit, each is
    ///   tried in turn.
    /// - Parameter mayGuess: Include calls that match neither by address nor by SSRC.
    @_noAllocation @_noLocks
    func candidates(ssrc: UInt32, source: SocketAddress, turn: Int, mayGuess: Bool) -> RouteCandidates {
        var candidates = RouteCandidates()
        var alone = Lone()
        var (afar, onHost) = (Lone(), Lone())
        var atAddress = 0
        // Mixed, so that alternating streams do not always get the same number.
        let mixed = UInt64(truncatingIfNeeded: turn) &* 0x9E37_79B9_7F4A_7C15
        let start = count > 0 ? Int(mixed >> 40) % count : 0
        let fresh = mixed >> 63 == 0 ? RouteLikelihood.freshElsewhere : .freshBeforeOthers
        for offset in 0..<count {
            let index = start + offset < count ? start + offset : start + offset - count
            let route = unsafe routes[index]
            if case .some = route.sockets { continue }
            let isAtAddress =
                isSame(route.address, source) || isSame(route.control, source) || isSame(route.described, source)
            if isAtAddress { atAddress += 1 }
            var likelihood = Self.likelihood(of: route, ssrc, isAtAddress: isAtAddress)
            if case .none = likelihood, isGuess(route), isOnHost(route, source) { likelihood = .freshElsewhere }
            switch likelihood {
            case .none: continue
            case .freshElsewhere where !mayGuess: continue
            case .addressAlone where !route.isProtected: alone.note(index)
            case .freshElsewhere where !route.isProtected:
                if isOnHost(route, source) { onHost.note(index) } else { afar.note(index) }
            case .freshElsewhere, .freshBeforeOthers: candidates.insert(index, fresh)
            case .addressAndSSRC, .addressOfFresh, .ssrcElsewhere, .addressAlone:
                candidates.insert(index, likelihood)
            }
        }
        if let index = alone.index, atAddress == 1 { candidates.insert(index, .addressAlone) }
        if let index = onHost.index ?? afar.index { candidates.insert(index, .freshElsewhere) }
        candidates.dropUnlikely()
        return candidates
    }

    @_noAllocation @_noLocks
    private static func likelihood(of route: Route, _ ssrc: UInt32, isAtAddress: Bool) -> RouteLikelihood {
        let isOfSSRC = route.knowsSSRC && route.ssrc == ssrc
        if isAtAddress {
            if isOfSSRC { return .addressAndSSRC }
            // A description may name another SSRC than the peer then uses.
            return route.isFresh && (!route.knowsSSRC || route.isProtected) ? .addressOfFresh : .addressAlone
        }
        if isOfSSRC { return .ssrcElsewhere }
        return route.isFresh && (!route.knowsSSRC || route.isProtected) ? .freshElsewhere : .none
    }

    /// The only one of its kind, if there is no other.
    private struct Lone: BitwiseCopyable {
        private var first: Int?
        private var isOnly = true

        @_noAllocation @_noLocks
        init() {}

        @_noAllocation @_noLocks
        mutating func note(_ index: Int) {
            if case .some = first { isOnly = false }
            first = index
        }

        var index: Int? {
            @_noAllocation @_noLocks get { isOnly ? first : nil }
        }
    }

    @_noAllocation @_noLocks
    private static func route(of call: UnsafeMutablePointer<MediaCall>) -> Route {
        let remoteSSRC = unsafe call.pointee.remoteSSRC
        return unsafe Route(
            ssrc: remoteSSRC ?? 0, knowsSSRC: remoteSSRC != nil, isFresh: !call.pointee.hasReceivedMedia,
            isProtected: call.pointee.isProtected, address: call.pointee.path?.datagrams.remote,
            control: call.pointee.separateControlAddress, described: call.pointee.describedAddress,
            sockets: call.pointee.sockets)
    }

    @_noAllocation @_noLocks
    private func isSame(_ known: SocketAddress?, _ source: SocketAddress) -> Bool {
        guard let known else { return false }
        return known.isSame(as: source)
    }

    /// Whether packets without protection have come from elsewhere than the peer's description names.
    @_noAllocation @_noLocks
    private func isGuess(_ route: Route) -> Bool {
        guard !route.isProtected, let described = route.described, let address = route.address else { return false }
        return !described.isSame(as: address)
    }

    /// Whether the peer, or what its description names, has another port of this host.
    @_noAllocation @_noLocks
    private func isOnHost(_ route: Route, _ source: SocketAddress) -> Bool {
        if let address = route.address, address.hasSameHost(as: source) { return true }
        guard let described = route.described else { return false }
        return described.hasSameHost(as: source)
    }
}
