public import ConfigReader
internal import HTTPTransport

/// Where programs act on a device over HTTP: the section `control.http`.
public struct ControlHTTPConfiguration: Sendable, Equatable {
    /// The interface on TCP.
    public struct Network: Sendable, Equatable {
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
    }

    /// A certificate's files, in PEM form.
    public struct Certificate: Sendable, Equatable {
        /// The chain, the own certificate first.
        public var chainPath: String
        /// The private key.
        public var keyPath: String
    }

    /// Which Unix socket; the standard one is beside the control socket.
    public var socket = ControlConfiguration.Socket.standard
    /// The interface on TCP; nil for none.
    public var network: Network?
    /// The folder in which events are kept; nil keeps them in memory.
    public var historyFolder: String?

    /// Bytes in a token. Nothing limits guesses, so that no guesser keeps others out: its length does.
    public static let leastTokenBytes = 16

    /// The interface on its standard socket.
    public init() {}

    /// Where it listens, if the control socket is at `control`: `control-http.sock` beside `control.sock`, unless it has a path.
    public func path(beside control: String) -> String {
        switch socket {
        case .path(let path): path
        case .standard: (control.hasSuffix(".sock") ? String(control.dropLast(5)) : control) + "-http.sock"
        }
    }

    /// The keys of the section `control.http`.
    struct Keys: ConfigKeys {
        let socket = ConfigKey.outputSocket(
            "socket", or: "default", "where it listens; `default` is beside `control.socket`"
        ).unset("`default`")
        let listen = ConfigKey.endpoint("listen", "where it also listens on TCP; without this key, nowhere")
        let token = ConfigKey.secret(
            "token", "what a client on TCP must present, as a bearer token of 16 bytes or more")
        let chainFile = ConfigKey.path(
            "chain_file", readable: true,
            "PEM, the chain for TLS, the own certificate first; required except on loopback")
        let keyFile = ConfigKey.path("key_file", readable: true, "PEM, the certificate's private key")
        let allowedHosts = ConfigKey.list(
            "allowed_hosts", "names by which clients on TCP call it, besides those of `listen` and the certificate")
        let allowedOrigins = ConfigKey.list(
            "allowed_origins", of: "origins", "web pages that may use it, such as https://desk.example.org"
        ) { text throws(ConfigValueFault) in
            if WebOrigin.isOrigin(text) { return text }
            throw ConfigValueFault("\"\(text)\" must be an origin without a path, such as https://desk.example.org")
        }
        let history = ConfigKey.outputFolder(
            "history_folder",
            "keeps events for clients that come again, also over a restart; without it they are in memory")
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let path = section.value(\.socket, &problems) ?? "default"
        if path != "default" { socket = .path(path) }
        if path != "default", path.utf8.count > ControlConfiguration.longestPath {
            problems.append(
                section.problem(
                    \.socket,
                    "is a path of \(path.utf8.count) bytes, and sockets have \(ControlConfiguration.longestPath) at most: \(path)"
                ))
        }
        historyFolder = section.value(\.history, &problems)
        network = Network(section, &problems)
    }
}

extension ControlHTTPConfiguration {
    /// Checks the socket beside that of lines.
    func check(
        beside control: String, in section: KeyedSection<ControlConfiguration.Keys>, _ part: KeyedSection<Keys>,
        _ problems: inout [ConfigProblem]
    ) {
        let path = path(beside: control)
        let length = path.utf8.count
        if case .path = socket {
            if path == control {
                problems.append(part.problem(\.socket, "is control.socket, too; give it another path"))
            }
        } else if length > ControlConfiguration.longestPath {
            problems.append(
                section.problem(
                    \.socket,
                    "leaves no room for that of control.http beside it, a path of \(length) bytes, and sockets have "
                        + "\(ControlConfiguration.longestPath) at most; give control.http.socket, or a shorter path"))
        }
    }
}

extension ControlHTTPConfiguration.Network {
    init?(_ section: KeyedSection<ControlHTTPConfiguration.Keys>, _ problems: inout [ConfigProblem]) {
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
        if let token, token.revealed.utf8.count < ControlHTTPConfiguration.leastTokenBytes {
            problems.append(
                section.problem(
                    \.token,
                    "holds a token of \(token.revealed.utf8.count) bytes, which can be guessed; it needs "
                        + "\(ControlHTTPConfiguration.leastTokenBytes) at least, such as those of `openssl rand -hex 24`"
                ))
        }
        if section.has(\.chainFile) != section.has(\.keyFile) {
            section.require(\.chainFile, &problems)
            section.require(\.keyFile, &problems)
        }
        if let chain, let key {
            certificate = ControlHTTPConfiguration.Certificate(chainPath: chain, keyPath: key)
        }
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
