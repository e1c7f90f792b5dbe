internal import CRealtime
public import Realtime

/// The sockets of one thread, each in a numbered slot, to wait for together and to send through by number.
///
/// Sockets are made and freed by another thread, which also gives out the numbers: nothing here allocates.
@safe
public struct SocketSet: ~Copyable {
    /// Slots: numbers are below this.
    public static var capacity: Int {
        @_noAllocation @_noLocks get { 256 }
    }

    /// The slot of the socket that all calls share, one for each family of addresses.
    @_noAllocation @_noLocks
    public static func mainSlot(isIPv6: Bool) -> Int { isIPv6 ? 1 : 0 }

    /// The first slot for other sockets.
    public static var firstExtraSlot: Int { 2 }

    /// Readable when one of the sockets is.
    public let descriptor: Int32
    private let slots: UnsafeMutablePointer<UnsafeMutablePointer<UDPSocket>?>
    /// No socket is in this slot or above.
    public private(set) var end = 0

    /// Makes an empty set.
    public init() throws(RealtimeError) {
        descriptor = handset_socket_set_open()
        if descriptor < 0 { throw RealtimeError(doing: "opening a set of sockets (epoll)", errno: -descriptor) }
        unsafe slots = .allocate(capacity: Self.capacity)
        unsafe slots.initialize(repeating: nil, count: Self.capacity)
    }

    deinit {
        handset_close(descriptor)
        unsafe slots.deallocate()
    }

    /// Puts a socket, which stays where it is, into a slot that is free.
    @_noAllocation @_noLocks
    public mutating func insert(_ socket: UnsafeMutablePointer<UDPSocket>, at slot: Int) {
        guard slot >= 0, slot < Self.capacity else { return }
        unsafe slots[slot] = socket
        end = max(end, slot + 1)
        watch(descriptor, unsafe socket.pointee.descriptor, true)
    }

    /// Takes the socket out of a slot; nil if there is none.
    @_noAllocation @_noLocks
    public mutating func remove(at slot: Int) -> UnsafeMutablePointer<UDPSocket>? {
        guard slot >= 0, slot < end, let socket = unsafe slots[slot] else { return nil }
        unsafe slots[slot] = nil
        watch(descriptor, unsafe socket.pointee.descriptor, false)
        return unsafe socket
    }

    /// Replaces what `batch` holds with datagrams that wait at the socket in `slot`; see ``UDPSocket/receive(into:slot:)``.
    @_noAllocation @_noLocks
    public func receive(from slot: Int, into batch: inout DatagramBatch) -> Int32 {
        guard let socket = unsafe slots[slot] else {
            batch.clear()
            return 0
        }
        return unsafe socket.pointee.receive(into: &batch, slot: slot)
    }

    /// Sends each datagram of `batch` through the socket that it is marked for, and empties it.
    ///
    /// - Returns: How many were not taken, by the kernel or for want of their socket; they are gone.
    @_noAllocation @_noLocks
    public func send(_ batch: inout DatagramBatch) -> Int {
        var dropped = 0
        var start = 0
        while start < batch.count {
            let slot = batch.socket(start)
            var next = start + 1
            while next < batch.count, batch.socket(next) == slot { next += 1 }
            if slot < end, let socket = unsafe slots[slot] {
                dropped += unsafe socket.pointee.send(batch, start..<next)
            } else {
                dropped += next - start
            }
            start = next
        }
        batch.clear()
        return dropped
    }
}

// epoll_ctl(2): the thread's own set.
@_semantics("no_performance_analysis") @inline(__always)
private func watch(_ set: Int32, _ socket: Int32, _ watches: Bool) {
    _ = watches ? handset_socket_set_add(set, socket) : handset_socket_set_remove(set, socket)
}
