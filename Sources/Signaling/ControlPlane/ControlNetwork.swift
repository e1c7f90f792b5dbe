public import ConfigReader
internal import HTTPTransport

/// The interface of a process on TCP, as its configuration has it.
public struct ControlNetwork: Sendable, Equatable {
    /// A certificate's files, in PEM form.
    public struct Certificate: Sendable, Equatable {
        /// The chain, the own certificate first.
        public var chainPath: String
        /// The private key.
        public var keyPath: String
    }

    /// The section of the configuration that has it, such as `control.http`.
    public let section: String
    /// Where it listens.
    public var listen: ConfigEndpoint
    /// What a client must present, as a bearer token.
    public var token: Secret
    /// The files of the certificate and its key, in PEM form; nil without TLS, on loopback addresses alone.
    public var certificate: Certificate?
    /// Names by which clients may call it, besides that of `listen` and those of the certificate.
    public var allowedHosts: [String]
    /// Origins of web pages that may use it, besides its own.
    public var allowedOrigins: [String]

    /// Bytes in a token. Nothing limits guesses, so that no guesser keeps others out: its length does.
    public static let leastTokenBytes = 16
}

/// The keys of a section that has a ``ControlNetwork``, and keeps events.
public struct ControlNetworkKeys: Sendable {
    /// Where it listens on TCP.
    public let listen = ConfigKey.endpoint(
        "listen", "where it also listens on TCP; without this key, nowhere")
    /// What clients there present.
    public let token = ConfigKey.secret(
        "token", "what a client on TCP must present, as a bearer token of 16 bytes or more")
    /// The certificate's chain.
    public let chainFile = ConfigKey.path(
        "chain_file", readable: true,
        "PEM, the chain for TLS, the own certificate first; required except on loopback")
    /// The certificate's key.
    public let keyFile = ConfigKey.path(
        "key_file", readable: true, "PEM, the certificate's private key")
    /// Further names of the server.
    public let allowedHosts = ConfigKey.list(
        "allowed_hosts", "names by which clients on TCP call it, besides those of `listen` and the certificate")
    /// Web pages that may use it.
    public let allowedOrigins = ConfigKey.list(
        "allowed_origins", of: "origins", "web pages that may use it, such as https://desk.example.org"
    ) { text throws(ConfigValueFault) in
        if WebOrigin.isOrigin(text) { return text }
        throw ConfigValueFault("\"\(text)\" must be an origin without a path, such as https://desk.example.org")
    }
    /// Where events are kept.
    public let history = ConfigKey.outputFolder(
        "history_folder",
        "keeps events for clients that come again, also over a restart; without it they are in memory")

    /// Declares them.
    public init() {}

    /// All of them, in the order of the documentation.
    public var declared: [any DeclaredKey] {
        [listen, token, chainFile, keyFile, allowedHosts, allowedOrigins, history]
    }
}

/// The keys of a section of which some are ``ControlNetworkKeys``.
public protocol ControlInterfaceKeys: ConfigKeys {
    /// Those.
    var network: ControlNetworkKeys { get }
}

extension ControlNetwork {
    /// Reads the keys of a section; nil without `listen`.
    ///
    /// - Parameter name: The section's, such as `control.http`.
    public init?<Keys: ControlInterfaceKeys>(
        _ section: KeyedSection<Keys>, named name: String, _ problems: inout [ConfigProblem]
    ) {
        self.section = name
        let endpoint = section.value(\.network.listen, &problems)
        let token = section.value(\.network.token, &problems)
        let chain = section.value(\.network.chainFile, &problems)
        let key = section.value(\.network.keyFile, &problems)
        allowedHosts = section.value(\.network.allowedHosts, &problems) ?? []
        allowedOrigins = section.value(\.network.allowedOrigins, &problems) ?? []
        guard section.has(\.network.listen) else {
            let reason = "is for TCP; give listen, or remove this key"
            section.rejectIdle(\.network.token, reason, &problems)
            section.rejectIdle(\.network.chainFile, reason, &problems)
            section.rejectIdle(\.network.keyFile, reason, &problems)
            section.rejectIdle(\.network.allowedHosts, reason, &problems)
            section.rejectIdle(\.network.allowedOrigins, reason, &problems)
            return nil
        }
        if !section.has(\.network.token) {
            problems.append(
                section.problem(\.network.listen, "needs token_file: every user of the machine reaches a port"))
        }
        if let token, token.revealed.utf8.count < Self.leastTokenBytes {
            problems.append(
                section.problem(
                    \.network.token,
                    "holds a token of \(token.revealed.utf8.count) bytes, which can be guessed; it needs "
                        + "\(Self.leastTokenBytes) at least, such as those of `openssl rand -hex 24`"
                ))
        }
        if section.has(\.network.chainFile) != section.has(\.network.keyFile) {
            section.require(\.network.chainFile, &problems)
            section.require(\.network.keyFile, &problems)
        }
        if let chain, let key { certificate = Certificate(chainPath: chain, keyPath: key) }
        guard let endpoint else { return nil }
        if !section.has(\.network.chainFile), HostName(endpoint.host)?.isLoopback != true {
            problems.append(
                section.problem(
                    \.network.listen,
                    "is an address that other machines reach, where the token must not cross the network in plain text; give "
                        + "chain_file and key_file, or listen on 127.0.0.1"))
        }
        for host in allowedHosts where HostPattern(host) == nil {
            problems.append(section.problem(\.network.allowedHosts, "\"\(host)\" is not the name of a host"))
        }
        listen = endpoint
        self.token = token ?? Secret("")
    }
}
