internal import Datagrams
public import NetworkAddress

/// Where a device receives media.
public struct MediaAddress: Sendable {
    /// A local address as peers without ICE can reach it, with the first worker's port or 0. Never the wildcard address.
    public let address: SocketAddress
    /// The address to which sockets are bound: the same, or the wildcard address for all addresses of the machine. Then
    /// ICE finds out which of them can be reached, and an answer to an offer without ICE names the one that reaches the
    /// peer.
    public let bindAddress: SocketAddress

    /// The address that the configuration names. Without one, or with the wildcard address, descriptions name the address
    /// from which this machine reaches the signaling server, and sockets are bound to all addresses. The exception is a
    /// server on this machine: it is for trials, so that without an address sockets are bound to the loopback address
    /// alone.
    ///
    /// May look up the server's name, and so block: not for an event loop.
    public init(for configuration: DeviceConfiguration) throws(MediaAddressError) {
        let port = configuration.media.port
        let configured = configuration.media.address?.withPort(port)
        if let configured, !configured.isUnspecified {
            address = configured
            bindAddress = configured
            return
        }
        address = try Self.source(towards: configuration.account.eventsHost).withPort(port)
        let all = configured ?? SocketAddress(host: "0.0.0.0", port: port) ?? address
        bindAddress = configured == nil && address.isLoopback ? address : all
    }

    private static func source(towards host: String) throws(MediaAddressError) -> SocketAddress {
        guard let server = SocketAddress.lookUp(host: host, port: 9) else {
            throw MediaAddressError(
                "cannot find the address of the signaling server's host \"\(host)\". Check account.server, or set "
                    + "media.address to an address of this machine.")
        }
        guard let source = server.localSource(), !source.isUnspecified else {
            throw MediaAddressError(
                "there is no route to the signaling server \(server.host). Set media.address to an address of this "
                    + "machine.")
        }
        return source
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
