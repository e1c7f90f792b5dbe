/// One address of one of this machine's network interfaces.
public struct NetworkInterface: Hashable, Sendable {
    /// The interface's name, such as "eth0".
    public let name: String
    /// The address; its port is 0.
    public let address: SocketAddress

    /// Says which interface has which address.
    public init(name: String, address: SocketAddress) {
        self.name = name
        self.address = address
    }
}
