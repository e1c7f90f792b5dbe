internal import Core
internal import Realtime

/// Which sockets a worker has, by slot: kept by the control side, which makes and frees them.
@safe
struct SocketTable: ~Copyable, @unchecked Sendable {
    // Each socket has its own allocation: the worker's thread receives and sends through it, other threads only send,
    // and the owner of this table frees it once the worker's thread has released it.
    @safe
    private struct Entry {
        let socket: UnsafeMutablePointer<UDPSocket>
        let address: SocketAddress
        /// The port of a call's own, which rests once no socket has it.
        let lease: PortLease?
        /// The worker has been asked to release it.
        var isRetired = false
    }

    private var entries: [Int: Entry] = [:]
    /// How many sockets each slot has had, beyond the first.
    private var rounds = [Int](repeating: 0, count: SocketSet.capacity)
    private let watcher: SocketWatcher

    /// - Parameter watcher: That of the worker's set.
    init(_ watcher: consuming SocketWatcher) { self.watcher = watcher }

    /// Opens the sockets that all calls share. For the wildcard address that is one for IPv4 and one for IPv6, on one
    /// port, if the machine has both.
    ///
    /// - Returns: The address asked for, with its port.
    mutating func openMain(_ address: SocketAddress, in set: inout SocketSet) throws(RealtimeError) -> SocketAddress {
        let slot = SocketSet.mainSlot(isIPv6: address.isIPv6)
        let bound = try add(try UDPSocket(boundTo: address), at: slot, to: &set)
        if address.isUnspecified, let other = SocketAddress(host: address.isIPv6 ? "0.0.0.0" : "::", port: bound.port) {
            // A machine without the other family, or with the port taken there, does with one.
            if let socket = try? UDPSocket(boundTo: other) {
                _ = try add(socket, at: SocketSet.mainSlot(isIPv6: other.isIPv6), to: &set)
            }
        }
        return bound
    }

    private mutating func add(
        _ socket: consuming UDPSocket, at slot: Int, to set: inout SocketSet
    ) throws(RealtimeError) -> SocketAddress {
        let bound = socket.localAddress
        unsafe set.insert(try take(socket, at: slot), at: slot)
        return bound
    }

    /// Opens a socket in a free slot.
    mutating func open(_ address: SocketAddress) throws(RealtimeError) -> (Int, UnsafeMutablePointer<UDPSocket>) {
        let slot = try freeSlot()
        return unsafe (slot, try take(try UDPSocket(boundTo: address), at: slot))
    }

    /// Puts a call's own socket into a free slot.
    mutating func adopt(
        _ socket: consuming UDPSocket, _ lease: PortLease
    ) throws(RealtimeError) -> (Int, UnsafeMutablePointer<UDPSocket>) {
        let slot = try freeSlot()
        return unsafe (slot, try take(socket, at: slot, lease))
    }

    /// Makes a pair of joined sockets, and puts one end into a free slot.
    mutating func openPair(
        holdingBack bytes: Int32, otherEnd: inout UDPSocket?
    ) throws(RealtimeError) -> (Int, UnsafeMutablePointer<UDPSocket>) {
        let slot = try freeSlot()
        let end = try UDPSocket(joinedTo: &otherEnd, sendBufferBytes: bytes)
        return unsafe (slot, try take(end, at: slot))
    }

    private func freeSlot() throws(RealtimeError) -> Int {
        let taken = Set(entries.keys.map { SocketSet.place(of: $0) })
        guard let place = (SocketSet.firstExtraSlot..<SocketSet.capacity).first(where: { !taken.contains($0) }) else {
            throw RealtimeError(doing: "opening one more socket for a call", errno: Self.tooMany)
        }
        return SocketSet.slot(at: place, round: rounds[place])
    }

    /// Has the kernel watch a socket, which is closed if it refuses: the worker would never read it.
    private mutating func take(
        _ socket: consuming UDPSocket, at slot: Int, _ lease: PortLease? = nil
    ) throws(RealtimeError) -> UnsafeMutablePointer<UDPSocket> {
        try watcher.watch(socket, slot: slot)
        let address = socket.localAddress
        let memory = UnsafeMutablePointer<UDPSocket>.allocate(capacity: 1)
        unsafe memory.initialize(to: socket)
        entries[slot] = unsafe Entry(socket: memory, address: address, lease: lease)
        return unsafe memory
    }

    /// EMFILE: too many open files.
    private static var tooMany: Int32 { 24 }

    func boundAddress(_ slot: Int) -> SocketAddress? { entries[slot]?.address }

    func send(_ bytes: [UInt8], by path: DatagramPath) {
        guard let entry = entries[path.socket], !entry.isRetired else { return }
        unsafe entry.socket.pointee.send(bytes, from: path.local, to: path.remote)
    }

    mutating func retire(_ slot: Int) { entries[slot]?.isRetired = true }

    /// Frees the socket that lies at this address.
    mutating func free(socketAt address: UInt) {
        guard let slot = entries.first(where: { unsafe UInt(bitPattern: $0.value.socket) == address })?.key,
            let entry = entries.removeValue(forKey: slot)
        else { return }
        rounds[SocketSet.place(of: slot)] += 1
        unsafe entry.socket.deinitialize(count: 1)
        unsafe entry.socket.deallocate()
    }
}
