// SIPClient: an account at a SIP server as a signaling service: its sockets, its timers, and the names that it looks up.

internal import HTTPTransport
public import Core
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

    /// A certificate that we show to a server that asks for one: files in PEM form.
    public struct ClientCertificate: Hashable, Sendable {
        /// The chain, our own certificate first.
        public var chainFile: String
        /// The private key, without a passphrase.
        public var keyFile: String

        /// Names both files.
        public init(chainFile: String, keyFile: String) {
            self.chainFile = chainFile
            self.keyFile = keyFile
        }

        /// Why the files cannot be used.
        public struct Fault: Error, Hashable, Sendable {
            /// Whether the key is to blame, or the chain.
            public let isOfKey: Bool
            /// The file, what is wrong with it, and what to try.
            public let message: String
        }

        /// Reads the files.
        ///
        /// - Throws: ``Fault`` if they hold no certificate that is good today, or not its key.
        public func check() throws(Fault) { _ = try shown(by: .system) }

        /// A trust that shows it.
        func shown(by trust: TLSTrust) throws(Fault) -> TLSTrust {
            do throws(CertificateFault) {
                return try trust.showing(CertificateFiles(chainPath: chainFile, keyPath: keyFile))
            } catch {
                throw Fault(isOfKey: error.part == .key, message: "\"\(error.path)\" \(error.message)")
            }
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
    /// What we show over TLS to a server that asks for it; the files are read again for each connection.
    public var certificate: ClientCertificate?
    /// Where the owner keeps ``SIPAccountSettings/instance``; nil for another one in each process.
    public var instanceFile: String?

    /// Makes a configuration with the defaults.
    public init(account: SIPAccountSettings, server: Server) {
        self.account = account
        self.server = server
    }
}
