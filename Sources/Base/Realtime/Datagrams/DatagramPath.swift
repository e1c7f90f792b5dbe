public import Core

/// The path of a datagram: its owner's socket, the address of this machine, and the target.
@frozen
public struct DatagramPath: Hashable, BitwiseCopyable, Sendable {
    /// A slot of a ``SocketSet``.
    public var socket: Int
    /// The local address that the peer knows; nil lets the socket, or the route, choose. The port is not used.
    public var local: SocketAddress?
    /// The destination.
    public var remote: SocketAddress

    /// Makes a path.
    @_noAllocation @_noLocks
    public init(socket: Int, local: SocketAddress?, remote: SocketAddress) {
        self.socket = socket
        self.local = local
        self.remote = remote
    }

    /// The default path to an address: through its family's main socket, from the local address that the route selects.
    @_noAllocation @_noLocks
    public init(to remote: SocketAddress) {
        self.init(socket: SocketSet.mainSlot(isIPv6: remote.isIPv6), local: nil, remote: remote)
    }
}
