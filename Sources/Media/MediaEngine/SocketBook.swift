internal import Datagrams
internal import Realtime

/// Which sockets a worker has, by slot: kept by the control side, which makes and frees them.
@safe
struct SocketBook: ~Copyable, @unchecked Sendable {
    // Sockets lie in memory of their own: the worker's thread receives and sends through them, any other only sends,
    // and whoever holds the book frees them once the thread has let go.
    @safe
    private struct Entry {
        let socket: UnsafeMutablePointer<UDPSocket>
        let address: SocketAddress
        /// The worker has been asked to let go of it.
        var isRetired = false
    }

    private var entries: [Int: Entry] = [:]

    /// Opens the sockets that all calls share. For the wildcard address that is one for IPv4 and one for IPv6, on one
    /// port, if the machine has both.
    ///
    /// - Returns: The address asked for, with its port.
    mutating func openMain(_ address: SocketAddress, in set: inout SocketSet) throws(RealtimeError) -> SocketAddress {
        let slot = SocketSet.mainSlot(isIPv6: address.isIPv6)
        let bound = try add(address, at: slot, to: &set)
        if address.isUnspecified, let other = SocketAddress(host: address.isIPv6 ? "0.0.0.0" : "::", port: bound.port) {
            // A machine without the other family, or with the port taken there, does with one.
            _ = try? add(other, at: SocketSet.mainSlot(isIPv6: other.isIPv6), to: &set)
        }
        return bound
    }

    private mutating func add(
        _ address: SocketAddress, at slot: Int, to set: inout SocketSet
    ) throws(RealtimeError) -> SocketAddress {
        let socket = unsafe try Self.make(address)
        unsafe set.insert(socket, at: slot)
        let bound = unsafe socket.pointee.localAddress
        entries[slot] = unsafe Entry(socket: socket, address: bound)
        return bound
    }

    private static func make(_ address: SocketAddress) throws(RealtimeError) -> UnsafeMutablePointer<UDPSocket> {
        unsafe place(try UDPSocket(boundTo: address))
    }

    private static func place(_ socket: consuming UDPSocket) -> UnsafeMutablePointer<UDPSocket> {
        let memory = UnsafeMutablePointer<UDPSocket>.allocate(capacity: 1)
        unsafe memory.initialize(to: socket)
        return unsafe memory
    }

    /// Opens a socket in a free slot.
    mutating func open(_ address: SocketAddress) throws(RealtimeError) -> (Int, UnsafeMutablePointer<UDPSocket>) {
        let slot = try freeSlot()
        return unsafe (slot, take(try Self.make(address), at: slot))
    }

    /// Makes a pair of joined sockets, and puts one end into a free slot.
    mutating func openPair(
        holdingBack bytes: Int32, otherEnd: inout UDPSocket?
    ) throws(RealtimeError) -> (Int, UnsafeMutablePointer<UDPSocket>) {
        let slot = try freeSlot()
        let end = try UDPSocket(joinedTo: &otherEnd, sendBufferBytes: bytes)
        return unsafe (slot, take(Self.place(end), at: slot))
    }

    private func freeSlot() throws(RealtimeError) -> Int {
        guard let slot = (SocketSet.firstExtraSlot..<SocketSet.capacity).first(where: { entries[$0] == nil }) else {
            throw RealtimeError(doing: "opening one more socket for a call", errno: Self.tooMany)
        }
        return slot
    }

    private mutating func take(
        _ socket: UnsafeMutablePointer<UDPSocket>, at slot: Int
    ) -> UnsafeMutablePointer<UDPSocket> {
        entries[slot] = unsafe Entry(socket: socket, address: socket.pointee.localAddress)
        return unsafe socket
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
        unsafe entry.socket.deinitialize(count: 1)
        unsafe entry.socket.deallocate()
    }
}
