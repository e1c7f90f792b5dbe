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

/// The keys of a section that has a ``ControlNetwork``.
public protocol ControlNetworkKeys: ConfigKeys {
    /// Where it listens on TCP.
    var listen: ConfigKey<ConfigEndpoint> { get }
    /// What clients there present.
    var token: ConfigKey<Secret> { get }
    /// The certificate's chain.
    var chainFile: ConfigKey<String> { get }
    /// The certificate's key.
    var keyFile: ConfigKey<String> { get }
    /// Further names of the server.
    var allowedHosts: ConfigKey<[String]> { get }
    /// Web pages that may use it.
    var allowedOrigins: ConfigKey<[String]> { get }
}

/// The declarations of those keys.
public enum ControlNetworkKey {
    /// `listen`
    public static let listen = ConfigKey.endpoint(
        "listen", "where it also listens on TCP; without this key, nowhere")
    /// `token_file`
    public static let token = ConfigKey.secret(
        "token", "what a client on TCP must present, as a bearer token of 16 bytes or more")
    /// `chain_file`
    public static let chainFile = ConfigKey.path(
        "chain_file", readable: true,
        "PEM, the chain for TLS, the own certificate first; required except on loopback")
    /// `key_file`
    public static let keyFile = ConfigKey.path(
        "key_file", readable: true, "PEM, the certificate's private key")
    /// `allowed_hosts`
    public static let allowedHosts = ConfigKey.list(
        "allowed_hosts", "names by which clients on TCP call it, besides those of `listen` and the certificate")
    /// `allowed_origins`
    public static let allowedOrigins = ConfigKey.list(
        "allowed_origins", of: "origins", "web pages that may use it, such as https://desk.example.org"
    ) { text throws(ConfigValueFault) in
        if WebOrigin.isOrigin(text) { return text }
        throw ConfigValueFault("\"\(text)\" must be an origin without a path, such as https://desk.example.org")
    }
    /// `history_folder`
    public static let history = ConfigKey.outputFolder(
        "history_folder",
        "keeps events for clients that come again, also over a restart; without it they are in memory")
}

extension ControlNetwork {
    /// Reads the keys of a section; nil without `listen`.
    ///
    /// - Parameter name: The section's, such as `control.http`.
    public init?<Keys: ControlNetworkKeys>(
        _ section: KeyedSection<Keys>, named name: String, _ problems: inout [ConfigProblem]
    ) {
        self.section = name
        let endpoint = section.value(\.listen, &problems)
        let token = section.value(\.token, &problems)
        let chain = section.value(\.chainFile, &problems)
        let key = section.value(\.keyFile, &problems)
        allowedHosts = section.value(\.allowedHosts, &problems) ?? []
        allowedOrigins = section.value(\.allowedOrigins, &problems) ?? []
        guard section.has(\.listen) else {
            let reason = "is for TCP; give listen, or remove this key"
            section.rejectIdle(\.token, reason, &problems)
            section.rejectIdle(\.chainFile, reason, &problems)
            section.rejectIdle(\.keyFile, reason, &problems)
            section.rejectIdle(\.allowedHosts, reason, &problems)
            section.rejectIdle(\.allowedOrigins, reason, &problems)
            return nil
        }
        if !section.has(\.token) {
            problems.append(section.problem(\.listen, "needs token_file: every user of the machine reaches a port"))
        }
        if let token, token.revealed.utf8.count < Self.leastTokenBytes {
            problems.append(
                section.problem(
                    \.token,
                    "holds a token of \(token.revealed.utf8.count) bytes, which can be guessed; it needs "
                        + "\(Self.leastTokenBytes) at least, such as those of `openssl rand -hex 24`"
                ))
        }
        if section.has(\.chainFile) != section.has(\.keyFile) {
            section.require(\.chainFile, &problems)
            section.require(\.keyFile, &problems)
        }
        if let chain, let key { certificate = Certificate(chainPath: chain, keyPath: key) }
        guard let endpoint else { return nil }
        if !section.has(\.chainFile), HostName(endpoint.host)?.isLoopback != true {
            problems.append(
                section.problem(
                    \.listen,
                    "is an address that other machines reach, where the token must not cross the network in plain text; give "
                        + "chain_file and key_file, or listen on 127.0.0.1"))
        }
        for host in allowedHosts where HostPattern(host) == nil {
            problems.append(section.problem(\.allowedHosts, "\"\(host)\" is not the name of a host"))
        }
        listen = endpoint
        self.token = token ?? Secret("")
    }
}
