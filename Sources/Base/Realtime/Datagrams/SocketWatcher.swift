internal import CRealtime

/// Has the kernel watch sockets for a ``SocketSet``, on another thread than the set's, because that thread cannot
/// report why it fails.
///
/// A socket leaves by ``SocketSet/remove(at:)``, or by itself when it is closed.
public struct SocketWatcher: ~Copyable, Sendable {
    // A separate descriptor: the set's thread may close the set at any time.
    private let set: Int32

    /// Takes a descriptor of a set, which stays its owner's.
    init(set: Int32) throws(RealtimeError) {
        self.set = handset_duplicate(set)
        if self.set < 0 { throw RealtimeError(doing: "sharing a set of sockets (epoll)", errno: -self.set) }
    }

    deinit { handset_close(set) }

    /// Watches a socket as that of a slot, which is to be put there with ``SocketSet/insert(_:at:)`` next.
    public func watch(_ socket: borrowing UDPSocket, slot: Int) throws(RealtimeError) {
        try Self.watch(socket, for: set, slot: slot)
    }

    static func watch(_ socket: borrowing UDPSocket, for set: Int32, slot: Int) throws(RealtimeError) {
        let result = handset_set_watch(set, socket.descriptor, UInt64(slot), false, true)
        guard result == 0 else {
            throw RealtimeError(doing: "watching UDP socket \(socket.localAddress) (epoll)", errno: -result)
        }
    }
}
