import Glibc

/// Takes TCP connections on the IPv4 loopback.
public struct LoopbackListener: Sendable {
    /// The listening socket; whoever wants connections refused closes it.
    public let descriptor: Int32
    /// Its port.
    public let port: UInt16

    /// Listens on a port of the system's choice.
    public init() {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                bind(descriptor, name, length) + listen(descriptor, 4) + getsockname(descriptor, name, &length)
            }
        }
        precondition(result == 0, "the loopback has a free port")
        self.descriptor = descriptor
        port = UInt16(bigEndian: name.sin_port)
    }

    /// The next connection; waits for it.
    public func accept() -> Int32 { Glibc.accept(descriptor, nil, nil) }
}
