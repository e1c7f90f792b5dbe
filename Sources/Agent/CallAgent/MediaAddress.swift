internal import Realtime
public import Core

/// Where a device receives media.
public struct MediaAddress: Sendable {
    /// The address to which sockets are bound: one address, or the wildcard address for all addresses of the machine. Then
    /// ICE finds out which of them can be reached, and an answer to an offer without ICE names the one that reaches the
    /// peer. With the first worker's port or 0.
    public let bindAddress: SocketAddress
    /// Nil if the machine had no route to the server, or did not know its name.
    private let known: SocketAddress?

    /// A local address as peers without ICE can reach it, with the first worker's port or 0. Never the wildcard address.
    ///
    /// A device that started before its network did has the address of the default route at the moment of the question.
    public var address: SocketAddress { known ?? Self.ofDefaultRoute.withPort(bindAddress.port) }

    /// The address at which a device is reached whose media sockets are shared. May look up the server's name, and so block: not for
    /// an event loop.
    ///
    /// - Parameter shared: The media of several devices, whose sockets are bound already.
    public init(for configuration: DeviceConfiguration, in shared: SharedMedia) {
        let bound = shared.bindAddress
        bindAddress = bound
        guard bound.isUnspecified else {
            known = bound
            return
        }
        let source = SocketAddress.lookUp(host: configuration.account.eventsHost, port: 9)?.localSource()
        known = source.flatMap { $0.isUnspecified ? nil : $0.withPort(bound.port) }
    }

    /// Where the sockets of several devices are bound: where the configuration says, or to the loopback address alone if all servers
    /// are on this machine, or else to all.
    static func bindAddress(for configurations: [DeviceConfiguration]) -> SocketAddress {
        let port = configurations.first?.media.port ?? 0
        if let configured = configurations.first?.media.address { return configured.withPort(port) }
        let isLocal = configurations.allSatisfy { isOnThisMachine($0.account.eventsHost) }
        return (isLocal ? SocketAddress.loopbackIPv4 : .anyIPv4).withPort(port)
    }

    /// Whether a host is this machine by its name alone; none is looked up.
    static func isOnThisMachine(_ host: String) -> Bool {
        host == "localhost" || SocketAddress(host: host, port: 0)?.isLoopback == true
    }

    /// The address that the configuration names. Without one, or with the wildcard address, descriptions name the address
    /// from which this machine reaches the signaling server, and sockets are bound to all addresses. The exception is a
    /// server on this machine: it is for trials, so that without an address sockets are bound to the loopback address
    /// alone.
    ///
    /// May look up the server's name, and so block: not for an event loop.
    public init(for configuration: DeviceConfiguration) {
        let port = configuration.media.port
        let configured = configuration.media.address?.withPort(port)
        if let configured, !configured.isUnspecified {
            known = configured
            bindAddress = configured
            return
        }
        let source = SocketAddress.lookUp(host: configuration.account.eventsHost, port: 9)?.localSource()
        known = source.flatMap { $0.isUnspecified ? nil : $0.withPort(port) }
        if let known, configured == nil, known.isLoopback {
            bindAddress = known
        } else {
            bindAddress = configured ?? SocketAddress.anyIPv4.withPort(port)
        }
    }

    /// From where this machine reaches the rest of the world; the loopback address if it does not.
    private static var ofDefaultRoute: SocketAddress {
        // An address for documentation, to which nothing is sent (RFC 5737).
        let source = SocketAddress(host: "192.0.2.1", port: 9)?.localSource()
        return source.flatMap { $0.isUnspecified ? nil : $0 } ?? SocketAddress.loopbackIPv4
    }
}

extension AccountConfiguration {
    /// The host of ``eventsURL``, without brackets.
    var eventsHost: String { Self.host(of: eventsURL) }

    /// Whether what we say to the service stays secret: by TLS, or because it does not leave this machine.
    var isSignalingPrivate: Bool {
        if eventsURL.hasPrefix("https://") || eventsURL.hasPrefix("sips://") { return true }
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
