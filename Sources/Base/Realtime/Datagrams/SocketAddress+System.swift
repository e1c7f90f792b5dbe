internal import CRealtime
public import Core

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
