internal import Datagrams
internal import Peering

/// Finds the call that a datagram belongs to, by its sender's SSRC and address.
///
/// Several calls may share one remote address (a peer that, like us, has one socket for all calls), and one call may
/// change its address or its SSRC. So the SSRC counts first; an SSRC that no call has goes to the call at that address
/// whose SSRC is not known yet, or to the only call there. A wrong guess does no harm: the packet fails authentication
/// and is dropped. A linear scan over packed arrays; 256 calls take some 100 ns.
@safe
struct RouteTable: ~Copyable {
    private struct Route {
        var ssrc: UInt32
        var knowsSSRC: Bool
        /// The peer, or its TURN server; nil while there is no path.
        var address: SocketAddress?
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

    /// Adds a call; the caller has checked that there is room.
    @_noAllocation @_noLocks
    mutating func append(_ call: UnsafeMutablePointer<MediaCall>) {
        unsafe calls[count] = call
        unsafe routes[count] = Self.route(of: call)
        count += 1
    }

    /// Takes out the call at `index`; the last one takes its place.
    @_noAllocation @_noLocks
    mutating func remove(at index: Int) {
        count -= 1
        unsafe calls[index] = calls[count]
        unsafe routes[index] = routes[count]
    }

    /// Takes over the address and SSRC that the call at `index` now has.
    @_noAllocation @_noLocks
    mutating func update(_ index: Int) { unsafe routes[index] = Self.route(of: calls[index]) }

    /// Where the call `id` stands.
    @_noAllocation @_noLocks
    func index(of id: MediaCallID) -> Int? {
        for index in 0..<count where unsafe calls[index].pointee.id.rawValue == id.rawValue { return index }
        return nil
    }

    /// Where the call stands whose media comes through the TURN server at socket `slot` in channel `channel`.
    @_noAllocation @_noLocks
    func index(slot: Int, channel: UInt16) -> Int? {
        for index in 0..<count {
            guard let path = unsafe calls[index].pointee.peer.path, path.datagrams.socket == slot,
                let own = path.channel, own == channel
            else { continue }
            return index
        }
        return nil
    }

    /// Where the call stands that a packet from `source` with `ssrc` belongs to.
    @_noAllocation @_noLocks
    func index(ssrc: UInt32, source: SocketAddress) -> Int? {
        var bySSRC: Int?
        var newcomer: Int?
        var byAddress: Int?
        var atAddress = 0
        for index in 0..<count {
            let route = unsafe routes[index]
            let sameAddress = isSame(route.address, source)
            if route.knowsSSRC && route.ssrc == ssrc {
                if sameAddress { return index }
                bySSRC = index
            } else if sameAddress {
                atAddress += 1
                byAddress = index
                if !route.knowsSSRC { newcomer = index }
            }
        }
        return bySSRC ?? newcomer ?? (atAddress == 1 ? byAddress : nil)
    }

    @_noAllocation @_noLocks
    private static func route(of call: UnsafeMutablePointer<MediaCall>) -> Route {
        let remoteSSRC = unsafe call.pointee.peer.remoteSSRC
        return unsafe Route(
            ssrc: remoteSSRC ?? 0, knowsSSRC: remoteSSRC != nil, address: call.pointee.peer.path?.datagrams.remote)
    }

    @_noAllocation @_noLocks
    private func isSame(_ known: SocketAddress?, _ source: SocketAddress) -> Bool {
        guard let known else { return false }
        return known.isSame(as: source)
    }
}
