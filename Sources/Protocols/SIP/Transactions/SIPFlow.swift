/// How messages travel.
public enum SIPTransport: String, Hashable, Sendable {
    /// Datagrams: requests and responses are repeated.
    case udp = "UDP"
    /// A TCP connection.
    case tcp = "TCP"
    /// A TLS connection.
    case tls = "TLS"
    /// A WebSocket (RFC 7118).
    case ws = "WS"
    /// A WebSocket over TLS.
    case wss = "WSS"

    /// Whether nothing is repeated.
    public var isReliable: Bool { self != .udp }
}

/// Where messages are sent to and come from: a connection, or for UDP a socket and the peer's address. The owner of the
/// sockets numbers them: positive if we opened one to our server, negative for a peer that sent us datagrams.
public struct SIPFlow: Hashable, Sendable {
    /// Its number.
    public let id: Int
    /// Its transport.
    public let transport: SIPTransport
    /// Our host in `Via` and `Contact`.
    public let localHost: SIPHost
    /// Our port there.
    public let localPort: UInt16?
    /// The peer's address; `nil` if the owner of the sockets does not give it.
    public let remoteHost: SIPHost?

    /// Whether we opened it, to the account's server.
    public var isToServer: Bool { id > 0 }

    /// Makes a flow.
    public init(
        id: Int, transport: SIPTransport, localHost: SIPHost, localPort: UInt16?, remoteHost: SIPHost? = nil
    ) {
        self.id = id
        self.transport = transport
        self.localHost = localHost
        self.localPort = localPort
        self.remoteHost = remoteHost
    }
}
