internal import CallControl
internal import ConfigReader
internal import Core
internal import SIP
internal import SIPClient
internal import SIPSignaling

/// How a SIP server is spoken to, by the names of `account.sip.transport`.
public enum SIPTransportWord: String, CaseIterable, Sendable {
    case udp, tcp, tls, ws, wss
    /// As NAPTR and SRV records say.
    case auto

    fileprivate func choice(allowsPlainText: Bool) -> ServerLocator.Choice {
        switch self {
        case .udp: .only(.udp)
        case .tcp: .only(.tcp)
        case .tls: .only(.tls)
        case .ws: .only(.ws)
        case .wss: .only(.wss)
        case .auto: .best(isSecure: !allowsPlainText)
        }
    }
}

/// The section `account.sip`, whose value is the service's configuration.
extension SIPServiceConfiguration {
    /// Whose calls are looked at.
    enum Callers: String, CaseIterable, Sendable {
        /// Those that the server sends.
        case server
        /// Of any host that can reach the device.
        case anybody
    }

    /// An account without an address, which has the defaults.
    private static let usual = SIPServiceConfiguration(
        account: SIPAccountSettings(
            address: NameAddress(.other(scheme: "sip", rest: "")), username: "", password: ""),
        server: Server(host: "", transport: .udp))

    /// The keys of the section `account.sip`.
    struct Keys: ConfigKeys {
        let address = ConfigKey<NameAddress>.parsed(
            "address", "SIP URI", "the address of record, such as `sip:alice@example.org`", show: { "\($0)" }
        ) { text throws(ConfigValueFault) in
            guard let address = NameAddress(text), let uri = address.uri.sip, uri.user != nil else {
                throw ConfigValueFault("must be a SIP URI with a user, such as sip:alice@example.org")
            }
            guard uri.port == nil, uri.parameters.isEmpty, uri.headers.isEmpty, uri.password == nil,
                address.parameters.isEmpty
            else {
                throw ConfigValueFault(
                    "must be a user and a domain alone, such as sip:alice@example.org; `server` says where that is")
            }
            return address
        }.required
        let server = ConfigKey<Server>.parsed(
            "server", "HOST or HOST:PORT", "where the domain's requests are sent, if not to the domain itself"
        ) { text throws(ConfigValueFault) in
            if let server = SIPServiceConfiguration.server(text) { return server }
            throw ConfigValueFault("must be HOST or HOST:PORT, such as sip.example.org or 192.0.2.10:5060")
        }.unset("the domain of `address`")
        let transport = ConfigKey.choice("transport", of: SIPTransportWord.self, "the transport to the server")
            .defaulting(to: .udp)
        let path = ConfigKey<String>.parsed(
            "websocket_path", "path", "the path of the server's WebSocket, for `transport: ws` and `wss`"
        ) { text throws(ConfigValueFault) in
            guard text.hasPrefix("/"), text.utf8.allSatisfy({ $0 > 32 && $0 < 127 }), !text.contains("#") else {
                throw ConfigValueFault("must begin with a slash and have neither spaces nor #, such as /ws")
            }
            return text
        }.unset("/")
        let gruu = ConfigKey.bool(
            "gruu", "whether calls have the address that the server gives this very device as contact (RFC 5627)"
        ).defaulting(to: usual.account.usesGRUU)
        let redirections = ConfigKey.bool(
            "follow_redirections",
            "whether calls follow a redirection (3xx), through the server, if `account.callees` lists the new callee"
        ).defaulting(to: usual.account.agent.followsRedirections)
        let registration = ConfigKey.integer(
            "register_s", in: 0...86_400, unit: "s", "how long a registration is to last; 0 does not register"
        ).defaulting(to: Int(usual.account.registrationSeconds))
        let keepalive = ConfigKey.seconds(
            "keepalive_s", in: 5...3_600, "how often the connection is kept alive, unless the server asks for more"
        ).defaulting(to: usual.account.keepalive)
        let port = ConfigKey.integer("port", in: 0...65_535, "our UDP port for SIP; 0 for any")
            .defaulting(to: Int(usual.localPort))
        let callers = ConfigKey.choice(
            "calls_from", of: Callers.self, "sources whose calls are taken; other datagrams get no answer"
        ).defaulting(to: .server)
        let identity = ConfigKey<[String]>.list(
            "identity_from", of: "addresses",
            "sources whose `P-Asserted-Identity` names the caller (RFC 3325): `server`, or addresses of others"
        ) { text throws(ConfigValueFault) in
            if text == "server" || SocketAddress(host: text, port: 0) != nil { return text }
            throw ConfigValueFault("must be the word server, or an address such as 192.0.2.10; a name can be forged")
        }.defaulting(to: [])
        let realms = ConfigKey.list(
            "realms", "realms whose challenges get the password's proof, if not those that the registrar asks with"
        ).defaulting(to: [])
        let clientChain = ConfigKey.path(
            "client_certificate", readable: true,
            "PEM chain, our own certificate first, for a server that asks for one over TLS; with `client_key`")
        let clientKey = ConfigKey.path(
            "client_key", readable: true, "its private key in PEM form, without a passphrase")
        let instance = ConfigKey.outputFile(
            "instance_file",
            "keeps the identifier by which the server knows this device again after a restart (RFC 5626)"
        ).unset("another identifier in each process")
    }

    init?(
        _ section: KeyedSection<Keys>, user: String?, password: Secret, allowsPlainText: Bool,
        _ problems: inout [ConfigProblem]
    ) {
        self = Self.usual
        let address = section.value(\.address, &problems)
        let server = section.value(\.server, &problems)
        let transport = section.value(\.transport, &problems)
        account.registrationSeconds = UInt32(section.value(\.registration, &problems))
        section.read(\.keepalive, into: &account.keepalive, &problems)
        localPort = UInt16(section.value(\.port, &problems))
        account.acceptsStrangers = section.value(\.callers, &problems) == .anybody
        let vouching = section.value(\.identity, &problems)
        account.identityTrust.includesServer = vouching.contains("server")
        account.identityTrust.hosts = vouching.filter { $0 != "server" }.compactMap { SIPHost($0) }
        account.realms = Set(section.value(\.realms, &problems))
        section.read(\.gruu, into: &account.usesGRUU, &problems)
        section.read(\.redirections, into: &account.agent.followsRedirections, &problems)
        instanceFile = section.value(\.instance, &problems)
        let path = section.value(\.path, &problems)
        guard let address, let uri = address.uri.sip else { return nil }
        account.agent.address = address
        account.username = user ?? uri.plainUser ?? ""
        account.password = WipedBytes(password.revealed.utf8)
        self.server = server ?? Server(host: uri.host.text, transport: .udp)
        if let path { self.server.path = path }
        self.server.transport = transport.choice(allowsPlainText: allowsPlainText)
        certificate = Self.certificate(section, isSecure: isSecure, &problems)
    }

    private static func certificate(
        _ section: KeyedSection<Keys>, isSecure: Bool, _ problems: inout [ConfigProblem]
    ) -> ClientCertificate? {
        let chain = section.value(\.clientChain, &problems)
        let key = section.value(\.clientKey, &problems)
        guard section.has(\.clientChain) || section.has(\.clientKey) else { return nil }
        guard section.has(\.clientChain) else {
            problems.append(section.problem(\.clientKey, "is for client_certificate, which is missing"))
            return nil
        }
        guard section.has(\.clientKey) else {
            problems.append(section.problem(\.clientChain, "needs its private key in client_key"))
            return nil
        }
        if !isSecure {
            problems.append(
                section.warning(
                    \.clientChain, "is for transport: tls or wss, and the transport is another; nothing uses it"))
        }
        guard let chain, let key else { return nil }
        section.warnOfReaders(\.clientKey, key, &problems)
        let certificate = ClientCertificate(chainFile: chain, keyFile: key)
        guard section.fileChecks != .none else { return certificate }
        do throws(ClientCertificate.Fault) {
            try certificate.check()
        } catch {
            let key = error.isOfKey ? \Keys.clientKey : \.clientChain
            problems.append(section.problem(key, error.message))
        }
        return certificate
    }

    private static func server(_ text: String) -> Server? {
        guard case .sip(let uri)? = AnyURI("sip:" + text), uri.user == nil, uri.parameters.isEmpty, uri.headers.isEmpty,
            uri.port != 0
        else { return nil }
        return .init(host: uri.host.text, port: uri.port, transport: .udp)
    }

    /// The server for logs: `sip://host:port`, or `sips://…` over TLS.
    var serverURL: String {
        let host = server.host.contains(":") ? "[\(server.host)]" : server.host
        return "\(isSecure ? "sips" : "sip")://\(host)" + (server.port.map { ":\($0)" } ?? "")
    }

    private var isSecure: Bool {
        switch server.transport {
        case .only(let transport): transport.isSecure
        case .best(let isSecure): isSecure
        }
    }

    /// Whether what is said to the server leaves this machine in the clear.
    var isPlain: Bool {
        guard !isSecure else { return false }
        if server.host == "localhost" { return false }
        return SocketAddress(host: server.host, port: 0)?.isLoopback != true
    }
}

extension AccountConfiguration {
    /// Reads an account of `kind: sip`.
    init(sip section: KeyedSection<Keys>, server: String?, _ problems: inout [ConfigProblem]) {
        self.init(server: Self.defaultServer)
        trustRoots = Self.trustRoots(section, &problems)
        allowsPlainText = section.value(\.allowPlainText, &problems)
        if server != nil {
            problems.append(
                section.problem(\.kind, "is sip, and a server on the command line is for an exchange's account"))
        }
        Self.rejectExchangeKeys(section, &problems)
        let user = section.value(\.user, &problems)
        let password = section.requiredSecret(\.password, &problems)
        section.require(\.sip, &problems)
        guard let keys = section.value(\.sip, &problems),
            let sip = SIPServiceConfiguration(
                keys, user: user, password: password ?? Secret(""), allowsPlainText: allowsPlainText, &problems)
        else { return }
        if sip.isPlain, !allowsPlainText {
            let message =
                "sends calls to another machine in the clear: use tls or wss, or allow plain text "
                + "(account.allow_plain_text: true) if no one can listen on the network between"
            problems.append(keys.problem(\.transport, message))
        }
        self.sip = sip
        callees = section.value(\.callees, &problems).map(listing)
        use(server: sip.serverURL)
    }

    /// A list of callees of this account, whose domain a pattern may name.
    func listing(_ patterns: [CalleePattern]) -> CalleeList {
        CalleeList(patterns, ownHost: sip?.account.address.uri.sip?.host.text)
    }

    /// Whether calls follow a redirection of a SIP server.
    var followsRedirections: Bool { sip?.account.agent.followsRedirections == true }

    /// Whether calls of a SIP account are passed on to an exchange.
    public var passesOn: Bool { sip?.account.agent.passesOn == true }

    /// Calls of a SIP account are passed on to an exchange, which decides who may be called.
    public mutating func passOn() {
        sip?.account.agent.passesOn = true
        sip?.account.agent.followsRedirections = false
    }

    private static func rejectExchangeKeys(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let reason = "is for an exchange, and kind is sip"
        section.rejectIdle(\.server, "\(reason); account.sip.server says where the SIP server is", &problems)
        section.rejectIdle(\.moreServers, reason, &problems)
        section.rejectIdle(\.authURL, reason, &problems)
        section.rejectIdle(\.identityURL, reason, &problems)
        section.rejectIdle(\.eventsURL, reason, &problems)
        section.rejectIdle(\.appKey, reason, &problems)
        section.rejectIdle(\.appSecret, reason, &problems)
        section.rejectIdle(\.mediaToken, reason, &problems)
        section.rejectIdle(\.accessToken, reason, &problems)
        section.rejectIdle(\.token, reason, &problems)
        section.rejectIdle(\.tokenCommand, reason, &problems)
        section.rejectIdle(\.anonymous, reason, &problems)
        section.rejectIdle(\.session, reason, &problems)
        section.rejectIdle(\.sessionFile, reason, &problems)
    }
}
