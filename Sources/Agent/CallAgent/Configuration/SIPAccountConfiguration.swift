internal import CallControl
public import ConfigReader
internal import Core
public import SIP
public import SIPClient
public import SIPSignaling

/// An account at a SIP server.
public struct SIPAccountConfiguration: Sendable {
    /// How a server is spoken to, by the names of `transport`.
    public enum Transport: String, CaseIterable, Sendable {
        case udp, tcp, tls, ws, wss
        /// As NAPTR and SRV records say.
        case auto
    }

    /// Whose calls are looked at.
    public enum Callers: String, CaseIterable, Sendable {
        /// Those that the server sends.
        case server
        /// Of any host that can reach the device.
        case anybody
    }

    /// The address of record.
    public var address: NameAddress
    /// Where the server is.
    public var server: SIPServiceConfiguration.Server
    /// How long a registration lasts, in seconds; 0 does not register.
    public var registrationSeconds = 600
    /// Our UDP port; 0 for any.
    public var port = 0
    /// Whether calls are passed on to an exchange. It is not a configuration key: a trunk sets it.
    public var passesOn = false
    /// Whether calls have the address that the server gives this very device as contact.
    public var usesGRUU = false
    /// Whether calls follow a redirection (3xx) to its target, if ``AccountConfiguration/callees`` has it.
    public var followsRedirections = true
    /// How often the connection is kept alive.
    public var keepalive: Duration = .seconds(25)
    /// Whose calls are looked at.
    public var callers = Callers.server
    /// Whose word counts for who calls.
    public var identityTrust = IdentityTrust()
    /// The realms of the server's challenges; if empty, those that its registrar asks with.
    public var realms: Set<String> = []
    /// What is shown over TLS to a server that asks for a certificate.
    public var certificate: SIPServiceConfiguration.ClientCertificate?
    /// Where the device's instance is kept, by which a registrar knows it again; nil makes another one for each process.
    public var instanceFile: String?
    /// The name for challenges.
    public var user: String
    /// The password.
    public var password = Secret("")

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
        let server = ConfigKey<SIPServiceConfiguration.Server>.parsed(
            "server", "HOST or HOST:PORT", "where the domain's requests are sent, if not to the domain itself"
        ) { text throws(ConfigValueFault) in
            if let server = SIPAccountConfiguration.server(text) { return server }
            throw ConfigValueFault("must be HOST or HOST:PORT, such as sip.example.org or 192.0.2.10:5060")
        }.unset("the domain of `address`")
        let transport = ConfigKey.choice("transport", of: Transport.self, "the transport to the server")
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
        ).defaulting(to: false)
        let redirections = ConfigKey.bool(
            "follow_redirections",
            "whether calls follow a redirection (3xx), through the server, if `account.callees` lists the new callee"
        ).defaulting(to: true)
        let registration = ConfigKey.integer(
            "register_s", in: 0...86_400, unit: "s", "how long a registration is to last; 0 does not register"
        ).defaulting(to: 600)
        let keepalive = ConfigKey.seconds(
            "keepalive_s", in: 5...3_600, "how often the connection is kept alive, unless the server asks for more"
        ).defaulting(to: .seconds(25))
        let port = ConfigKey.integer("port", in: 0...65_535, "our UDP port for SIP; 0 for any").defaulting(to: 0)
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
        let address = section.value(\.address, &problems)
        let server = section.value(\.server, &problems)
        let transport = section.value(\.transport, &problems)
        registrationSeconds = section.value(\.registration, &problems)
        keepalive = section.value(\.keepalive, &problems)
        port = section.value(\.port, &problems)
        callers = section.value(\.callers, &problems)
        let vouching = section.value(\.identity, &problems)
        identityTrust.includesServer = vouching.contains("server")
        identityTrust.hosts = vouching.filter { $0 != "server" }.compactMap { SIPHost($0) }
        realms = Set(section.value(\.realms, &problems))
        usesGRUU = section.value(\.gruu, &problems)
        followsRedirections = section.value(\.redirections, &problems)
        instanceFile = section.value(\.instance, &problems)
        let path = section.value(\.path, &problems)
        guard let address, let uri = address.uri.sip else { return nil }
        self.address = address
        self.server = server ?? .init(host: uri.host.text, transport: .udp)
        if let path { self.server.path = path }
        self.server.transport =
            switch transport {
            case .udp: .only(.udp)
            case .tcp: .only(.tcp)
            case .tls: .only(.tls)
            case .ws: .only(.ws)
            case .wss: .only(.wss)
            case .auto: .best(isSecure: !allowsPlainText)
            }
        self.user = user ?? uri.plainUser ?? ""
        self.password = password
        certificate = Self.certificate(section, isSecure: isSecure, &problems)
    }

    private static func certificate(
        _ section: KeyedSection<Keys>, isSecure: Bool, _ problems: inout [ConfigProblem]
    ) -> SIPServiceConfiguration.ClientCertificate? {
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
        let certificate = SIPServiceConfiguration.ClientCertificate(chainFile: chain, keyFile: key)
        guard section.fileChecks != .none else { return certificate }
        do throws(SIPServiceConfiguration.ClientCertificate.Fault) {
            try certificate.check()
        } catch {
            let key = error.isOfKey ? \Keys.clientKey : \.clientChain
            problems.append(section.problem(key, error.message))
        }
        return certificate
    }

    private static func server(_ text: String) -> SIPServiceConfiguration.Server? {
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
            let sip = SIPAccountConfiguration(
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
        CalleeList(patterns, ownHost: sip?.address.uri.sip?.host.text)
    }

    private static func rejectExchangeKeys(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let reason = "is for an exchange, and kind is sip"
        section.rejectIdle(\.server, "\(reason); account.sip.server says where the SIP server is", &problems)
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
