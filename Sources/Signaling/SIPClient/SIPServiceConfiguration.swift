// SIPClient: an account at a SIP server as a signaling service: its sockets, its timers, and the names that it looks up.

public import NetworkAddress
public import SIP
public import SIPSignaling

/// How a device reaches a SIP server and who it is there.
public struct SIPServiceConfiguration: Sendable {
    /// Where the server is.
    public struct Server: Hashable, Sendable {
        /// A name, or an address without brackets.
        public var host: String
        /// Its port; nil looks it up, or is the usual one.
        public var port: UInt16?
        /// How it is spoken to.
        public var transport: ServerLocator.Choice
        /// The path of a WebSocket; begins with a slash.
        public var path = "/"

        /// Makes a server's place.
        public init(host: String, port: UInt16? = nil, transport: ServerLocator.Choice) {
            self.host = host
            self.port = port
            self.transport = transport
        }

        /// Makes the place of a server with one transport.
        public init(host: String, port: UInt16? = nil, transport: SIPTransport) {
            self.init(host: host, port: port, transport: .only(transport))
        }
    }

    /// Who we are.
    public var account: SIPAccountSettings
    /// Where the server is.
    public var server: Server
    /// Our UDP port; 0 for any. Connections have any.
    public var localPort: UInt16 = 0
    /// Name servers; those of the system if there are none.
    public var nameServers: [SocketAddress] = []
    /// A PEM file of certificates to trust beside the system's.
    public var trustRootFile: String?

    /// Makes a configuration with the defaults.
    public init(account: SIPAccountSettings, server: Server) {
        self.account = account
        self.server = server
    }
}
