// Datagrams: UDP in batches, and streams, for the threads that own a socket.

internal import CRealtime
public import Core

/// A bound UDP socket, owned by one thread; or one end of a joined pair, which to its owner is the same.
public struct UDPSocket: ~Copyable, Sendable {
    /// The descriptor to poll; readable when datagrams wait.
    public let descriptor: Int32
    /// The address it is bound to, with the port that the system chose if none was asked for.
    public let localAddress: SocketAddress
    /// Whether the socket is one of a pair, and so sends to the other one only.
    private let isJoined: Bool

    /// DSCP "expedited forwarding", for interactive voice (RFC 8837).
    public static let expeditedForwarding: Int32 = 46

    /// Opens and binds a socket.
    ///
    /// - Parameters:
    ///   - address: Where to bind; port 0 lets the system choose.
    ///   - receiveBufferBytes: Kernel buffer to ask for; it must hold what arrives between two reads.
    public init(boundTo address: SocketAddress, receiveBufferBytes: Int32 = 1 << 20) throws(RealtimeError) {
        let descriptor = handset_udp_open(address.raw, receiveBufferBytes, Self.expeditedForwarding)
        guard descriptor >= 0 else {
            throw RealtimeError(doing: "binding UDP socket \(address)", errno: -descriptor)
        }
        self.init(bound: descriptor)
    }

    /// Takes over a descriptor.
    init(bound descriptor: Int32) {
        self.descriptor = descriptor
        var bound = handset_address()
        _ = unsafe handset_local_address(descriptor, &bound)
        localAddress = SocketAddress(bound)
        isJoined = false
    }

    /// Makes a pair: what one end sends, the other receives as a datagram. The addresses of their datagrams mean
    /// nothing.
    ///
    /// - Parameters:
    ///   - other: Becomes the other end.
    ///   - sendBufferBytes: The most that each end buffers for the other, including the kernel's overhead of some
    ///     600 bytes per datagram; datagrams that do not fit are refused.
    public init(joinedTo other: inout UDPSocket?, sendBufferBytes: Int32) throws(RealtimeError) {
        var ends: [Int32] = [-1, -1]
        let result = unsafe ends.withUnsafeMutableBufferPointer {
            unsafe handset_pair_open($0.baseAddress, sendBufferBytes)
        }
        guard result == 0 else { throw RealtimeError(doing: "joining two sockets", errno: -result) }
        self.init(end: ends[0])
        other = UDPSocket(end: ends[1])
    }

    private init(end: Int32) {
        descriptor = end
        localAddress = SocketAddress(handset_address())
        isJoined = true
    }

    deinit { handset_close(descriptor) }

    /// Sends one datagram at once; any thread may.
    ///
    /// - Parameter local: The local address to send from, if the socket is bound to all.
    /// - Returns: Whether the kernel took it.
    @discardableResult
    public func send(_ bytes: [UInt8], from local: SocketAddress? = nil, to remote: SocketAddress) -> Bool {
        let source = local?.raw ?? handset_address()
        return unsafe bytes.withUnsafeBufferPointer {
            unsafe handset_send_one(descriptor, source, remote.raw, $0.baseAddress, $0.count) == 0
        }
    }

    /// Sends one datagram at once to the other end of a pair.
    ///
    /// - Returns: Whether there was room.
    public func sendToOtherEnd(_ bytes: [UInt8]) -> Bool {
        unsafe bytes.withUnsafeBufferPointer { unsafe handset_pair_send(descriptor, $0.baseAddress, $0.count) == 0 }
    }

    /// Replaces what `batch` holds with the datagrams that wait, as many as fit; never blocks.
    ///
    /// - Parameters:
    ///   - slot: The mark of the datagrams, see ``DatagramBatch/socket(_:)``.
    ///   - limit: The most datagrams to read; each one that is allowed costs some work, even if it does not exist.
    /// - Returns: 0, or the error number of a failed read.
    @_noAllocation @_noLocks
    public func receive(
        into batch: inout DatagramBatch, slot: Int = 0, limit: Int = DatagramBatch.capacity
    ) -> Int32 {
        let limit = max(0, min(limit, DatagramBatch.capacity))
        for index in 0..<limit { unsafe batch.datagrams[index].length = UInt32(DatagramBatch.slotBytes) }
        let received = unsafe receiveDatagrams(descriptor, batch.datagrams, Int32(truncatingIfNeeded: limit))
        batch.count = max(0, Int(received))
        for index in 0..<batch.count { unsafe batch.datagrams[index].socket = UInt32(truncatingIfNeeded: slot) }
        return min(0, received)
    }

    /// Sends all datagrams of `batch`, regardless of the socket that they are marked for, and empties it.
    ///
    /// - Returns: How many the kernel did not take; they are gone.
    @_noAllocation @_noLocks
    public func send(_ batch: inout DatagramBatch) -> Int {
        let dropped = send(batch, 0..<batch.count)
        batch.clear()
        return dropped
    }

    /// Sends some of the datagrams of `batch`.
    @_noAllocation @_noLocks
    func send(_ batch: borrowing DatagramBatch, _ range: Range<Int>) -> Int {
        guard !range.isEmpty else { return 0 }
        let first = unsafe batch.datagrams + range.lowerBound
        return unsafe sendDatagrams(
            descriptor, first, Int32(truncatingIfNeeded: range.count), isJoined)
    }
}

// recvmmsg(2) on a non-blocking socket.
@_semantics("no_performance_analysis") @inline(__always)
private func receiveDatagrams(
    _ descriptor: Int32, _ datagrams: UnsafeMutablePointer<handset_datagram>, _ limit: Int32
) -> Int32 {
    unsafe handset_receive(descriptor, datagrams, limit)
}

// sendmmsg(2) on a non-blocking socket.
@_semantics("no_performance_analysis") @inline(__always)
private func sendDatagrams(
    _ descriptor: Int32, _ datagrams: UnsafeMutablePointer<handset_datagram>, _ count: Int32, _ isJoined: Bool
) -> Int {
    var failed: Int32 = 0
    let sent = unsafe handset_send(descriptor, datagrams, count, isJoined, &failed)
    return Int(count - sent + failed)
}

// Multicast on the local link, over IPv4.
extension UDPSocket {
    /// Opens a socket on `port` of all IPv4 addresses, which other programs may have as well; or on any port, if one of
    /// them does not share it.
    public init(sharingPort port: UInt16) throws(RealtimeError) {
        let descriptor = handset_group_open(port)
        guard descriptor >= 0 else { throw RealtimeError(doing: "binding UDP port \(port)", errno: -descriptor) }
        self.init(bound: descriptor)
    }

    /// Receives what is sent to `group` on the interface that has the address `local`; to send there, give `local` as
    /// the address to send from. Joining twice does no harm.
    ///
    /// - Returns: Whether the kernel agreed.
    @discardableResult
    public func join(_ group: SocketAddress, through local: SocketAddress) -> Bool {
        handset_group_join(descriptor, group.raw, local.raw) == 0
    }
}

/// Properties of an address that only the system knows.
extension SocketAddress {
    /// Looks a host up, by name or literal address. Blocks: for start-up only.
    ///
    /// - Returns: The first address found; nil if there is none.
    public static func lookUp(host: String, port: UInt16) -> SocketAddress? {
        var raw = handset_address()
        guard unsafe handset_address_look_up(host, &raw) == 0 else { return nil }
        var address = SocketAddress(raw)
        address.port = port
        return address
    }

    /// The address of this machine from which packets to `self` would leave; port 0. Sends nothing.
    ///
    /// - Returns: nil when there is no route.
    public func localSource() -> SocketAddress? {
        var source = handset_address()
        guard unsafe handset_source_address(raw, &source) == 0 else { return nil }
        var address = SocketAddress(source)
        address.port = 0
        return address
    }
}
