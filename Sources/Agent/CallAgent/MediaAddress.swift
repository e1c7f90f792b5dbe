public import Datagrams

/// Where a device receives media.
public struct MediaAddress: Sendable {
    /// A local address as peers without ICE can reach it, with the first worker's port or 0.
    public let address: SocketAddress
    /// What sockets are bound to: the same, or all addresses, for ICE to find out which of them can be reached.
    public let bindAddress: SocketAddress

    /// The address that the configuration names, or else the one from which this machine reaches the signaling server.
    ///
    /// May look up the server's name, and so block: not for an event loop.
    public init(for configuration: DeviceConfiguration) throws(MediaAddressError) {
        var local: SocketAddress
        if let address = configuration.media.address {
            local = address
        } else {
            let host = configuration.account.eventsHost
            guard let server = SocketAddress.lookUp(host: host, port: 9) else {
                throw MediaAddressError(
                    "cannot find the address of the signaling server's host \"\(host)\". Check account.server.")
            }
            guard let source = server.localSource() else {
                throw MediaAddressError("there is no route to the signaling server \(server.host). Set media.address.")
            }
            local = source
        }
        local.port = configuration.media.port
        address = local
        // A server on this machine is for trying things out on this machine.
        let isPinned = configuration.media.address != nil || local.isLoopback
        bindAddress = isPinned ? local : SocketAddress(host: "0.0.0.0", port: local.port) ?? local
    }
}

/// There is no address to receive media at.
public struct MediaAddressError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, and what to try.
    public let description: String
    init(_ description: String) { self.description = description }
}

extension AccountConfiguration {
    /// The host of ``eventsURL``, without brackets.
    var eventsHost: String { Self.host(of: eventsURL) }

    /// Whether what we say to the service stays secret: by TLS, or because it does not leave this machine.
    var isSignalingPrivate: Bool {
        if eventsURL.hasPrefix("https://") { return true }
        if eventsHost == "localhost" { return true }
        return SocketAddress(host: eventsHost, port: 0)?.isLoopback ?? false
    }

    private static func host(of url: String) -> String {
        let rest = url.drop { $0 != ":" }.drop { $0 == ":" || $0 == "/" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if authority.first == "[" { return String(authority.dropFirst().prefix { $0 != "]" }) }
        return String(authority.prefix { $0 != ":" })
    }
}
