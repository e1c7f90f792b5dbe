internal import CRealtime
public import Core

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

extension NetworkInterface {
    /// The addresses of all interfaces that are up, at most 64.
    public static func all() -> [NetworkInterface] {
        var list = Array(repeating: handset_interface(), count: 64)
        let count = unsafe handset_interfaces(&list, Int32(list.count))
        return list.prefix(max(0, Int(count))).map { entry in
            let name = unsafe withUnsafeBytes(of: entry.name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            return NetworkInterface(name: name, address: SocketAddress(entry.address))
        }
    }
}
