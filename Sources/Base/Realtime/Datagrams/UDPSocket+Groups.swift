internal import CRealtime
public import Core

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
