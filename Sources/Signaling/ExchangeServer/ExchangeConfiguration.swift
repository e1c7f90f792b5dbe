public import ConfigReader
public import ControlPlane
public import ExchangeCore
public import Monitoring
public import SignalWire
import HTTPTransport
import Core
import Realtime

/// The configuration that an exchange starts with, as plain data.
@dynamicMemberLookup
public struct ExchangeConfiguration: Sendable {
    /// The files of a certificate, both in PEM form.
    public struct Certificate: Hashable, Sendable {
        /// The chain, the exchange's own certificate first.
        public var chainPath: String
        /// The private key.
        public var keyPath: String

        /// Names the files.
        public init(chainPath: String, keyPath: String) {
            self.chainPath = chainPath
            self.keyPath = keyPath
        }
    }

    /// Whether to listen without TLS.
    public enum PlainText: String, CaseIterable, Sendable {
        /// On loopback addresses only.
        case loopback
        /// On any address: anyone who can observe the network reads everything.
        case allowed
    }

    /// The address to listen on: a name or an address, without brackets.
    public var host = "127.0.0.1"
    /// The port to listen on; 0 lets the system choose.
    public var port = 8_080
    /// The certificate; without one the exchange speaks plain text.
    public var certificate: Certificate?
    /// The exchange is its own authority, in the place of ``certificate``.
    public var ownAuthority: OwnAuthority?
    /// Where plain text is allowed, if there is no certificate.
    public var plainText = PlainText.loopback
    /// Where clients open the WebSocket, if it is not under the host that they asked for it: behind a proxy.
    public var webSocketURL: String?
    /// The applications that may log users in.
    public var apps: [RegisteredApp] = []
    /// The keys with which applications sign tokens (AUTH-5).
    public var apiKeys: [SigningKey] = []
    /// The users.
    public var users: [Account] = []
    /// A file with more users, which `handset user` writes and the exchange looks at every second.
    public var usersFile: UsersFile?
    /// The users that the file had when the configuration was read.
    public var fileUsers: [Account] = []
    /// Whether anyone with an application's token may log in by a name alone (AUTH-3).
    public var allowsAnonymous = true
    /// Lifetimes of sessions and tokens, messages, presence, trunks and call records: what the exchange's state machine works by.
    public var core = ExchangeSettings()
    /// Whether browsers are shown the web phone, at `/`.
    public var showsWebPhone = false
    /// Web pages that may open a WebSocket beside the exchange's own, as origins such as `https://calls.example.org`.
    public var allowedOrigins: [String] = []
    /// Users that the web phone offers to everyone, with their media tokens; anyone who opens the page can read these.
    public var guests: [WebConfiguration.Guest] = []
    /// The STUN and TURN servers that clients receive.
    public var iceServers: [ICEServerConfiguration] = []
    /// How long devices ring for a stream (WHIP, WHEP) before its client is refused because no device answered.
    public var streamRinging = Duration.seconds(30)
    /// How many logins may fail.
    public var failedLogins = FailedLogins()
    /// TCP connections in all; `nil` for as many as the limit on open files and a quarter of the memory beyond 64 MiB leave
    /// room for, up to 200,000.
    public var connections: Int?
    /// TCP connections from one address, IPv6 by /64; `nil` for an eighth of all. This machine's own addresses have
    /// ``connectionsFromThisMachine``, and a proxy's connections count for the clients that it names.
    public var connectionsPerAddress: Int?
    /// TCP connections from this machine's own addresses (127.0.0.0/8 and `::1`) together; `nil` for half of all.
    public var connectionsFromThisMachine: Int?
    /// Bytes that all clients together who have not logged in may make the exchange hold; `nil` for a sixteenth of the
    /// memory of the machine or the control group, between 4 and 16 MiB.
    public var loginMemoryBytes: Int?
    /// Bytes kept for all users: events, invites, pushes, calls, sessions, groups and push tokens. `nil` for a quarter
    /// of the memory of the machine or the control group beyond 64 MiB, between 8 and 256 MiB.
    public var keptMemoryBytes: Int?
    /// Host names and addresses that clients may call the exchange by, besides its own; a first label of `*` matches
    /// any label.
    public var allowedHosts: [String] = []
    /// Proxies whose `X-Forwarded-For` says where a client is, by their addresses.
    public var trustedProxies: [String] = []

    /// How devices that are not connected are notified of invites.
    public var push = PushConfiguration()

    /// Where the exchange shows how it is doing; nil for nowhere.
    public var monitoring: MonitoringConfiguration?

    /// Where traces of calls are sent; nil for nowhere.
    public var traces: TraceConfiguration?

    /// Where an operator acts on the exchange while it runs; nil for nowhere.
    public var control: ControlSection?

    /// Where what must survive the process is kept; without a database the exchange forgets it all.
    public var databasePath: String?
    /// What a commit waits for.
    public var databaseDurability = ExchangeStore.Durability.full
    /// What to do with a database that is damaged.
    public var databaseIfCorrupt = ExchangeStore.CorruptFilePolicy.refuse
    /// The database of PostgreSQL that keeps it instead, which several exchanges may share: one owns it, the others wait.
    public var postgres: PostgresConfiguration?
    /// Where its state is; `nil` if it keeps nothing.
    public var stateLocation: StateLocation? { postgres.map { .postgres($0) } ?? databasePath.map { .file($0) } }
    /// How many records of calls are kept.
    public var callRecordLimits = RecordLimits()

    /// Warnings to the operator about a usable configuration.
    public private(set) var warnings: [ConfigProblem] = []

    /// Makes a configuration with defaults: loopback, port 8080, no users.
    public init() {}

    /// The settings of ``core`` by their own names.
    public subscript<Value>(dynamicMember member: WritableKeyPath<ExchangeSettings, Value>) -> Value {
        get { core[keyPath: member] }
        set { core[keyPath: member] = newValue }
    }
}

extension ExchangeConfiguration {
    /// The keys of a configuration file.
    public static var keys: [ConfigKeyEntry] { Keys.entries }

    /// The keys of a file's root.
    struct Keys: ConfigKeys {
        private static let usual = ExchangeConfiguration()

        let listen = ConfigKey.endpoint(
            "listen", "where to listen; 0.0.0.0 and [::] are all addresses; port 0 lets the system choose"
        ).defaulting(to: ConfigEndpoint(host: usual.host, port: usual.port))
        let certificate = ConfigKey.section("certificate", Certificate.Keys.self, "TLS")
            .unset("plain text, and on this machine only")
        let plainText = ConfigKey.choice(
            "plain_text", of: PlainText.self, "`allowed` only behind a proxy or tunnel that encrypts"
        ).defaulting(to: usual.plainText)
        let webSocketURL = ConfigKey.url(
            "websocket_url", schemes: ["ws", "wss"], "where clients open the WebSocket, if elsewhere: behind a proxy")
        let webPhone = ConfigKey.bool("web_phone", "serve browsers a [phone](web-phone.md) at /")
            .defaulting(to: usual.showsWebPhone)
        let allowedOrigins = ConfigKey.list("allowed_origins", of: "origins", "other web pages that may connect") {
            text throws(ConfigValueFault) in
            if WebOrigin.isOrigin(text) { return text }
            throw ConfigValueFault("\"\(text)\" must be an origin, such as https://calls.example.org")
        }
        let allowedHosts = ConfigKey.list(
            "allowed_hosts", of: "hosts",
            "further names by which clients may reach the exchange"
        ) { text throws(ConfigValueFault) in
            if HostPattern(text) != nil { return text }
            throw ConfigValueFault(
                "\"\(text)\" must be a host name or an address without a port, such as calls.example.org, "
                    + "*.example.org or 192.0.2.1")
        }
        let trustedProxies = ConfigKey.list(
            "trusted_proxies", of: "addresses", "proxies whose X-Forwarded-For gives a client's address"
        ) { text throws(ConfigValueFault) in
            if ClientAddress(text) != nil { return text }
            throw ConfigValueFault("\"\(text)\" must be an address, such as 127.0.0.1")
        }

        let apps = ConfigKey.sections("apps", RegisteredApp.Keys.self, "the programs that may log users in").required
        let users = ConfigKey.sections("users", Account.Keys.self, "the users").unset("required without `users_file`")
        let usersFile = ConfigKey.path("users_file", "more users, which `handset user` writes")
        let apiKeys = ConfigKey.sections(
            "api_keys", SigningKey.Keys.self, "who signs tokens, with `handset token` or any JWT library")
        let anonymous = ConfigKey.bool("anonymous", "whether guests may join rooms by a name alone")
            .defaulting(to: usual.allowsAnonymous)
        let presence = ConfigKey.bool("presence", "whether users see who else can be called")
            .defaulting(to: usual.core.tellsPresence)
        let trunks = ConfigKey.sections(
            "trunks", Trunk.Keys.self,
            "connections to telephone networks, which `handset trunk` carries ([trunk.md](trunk.md))")
        let iceServers = ConfigKey.sections(
            "ice_servers", ICEServerConfiguration.Keys.self, "STUN and TURN servers that clients receive")

        let keepalive = ConfigKey.seconds("keepalive_seconds", in: 1...300, "how often each connection is pinged")
            .defaulting(to: usual.core.keepalive)
        let resumeWindow = ConfigKey.seconds(
            "resume_window_seconds", in: 0...600, "how long a lost session can be resumed"
        ).defaulting(to: usual.core.resumeWindow)
        let streamRinging = ConfigKey.seconds(
            "stream_ringing_seconds", in: 1...120, "how long devices ring for a stream over WHIP or WHEP"
        ).defaulting(to: usual.streamRinging)
        let tokenLifetime = ConfigKey.seconds(
            "token_lifetime_seconds", in: 1...2_592_000, "lifetime of an access token"
        ).defaulting(to: usual.core.tokenLifetime)
        let refreshLifetime = ConfigKey.seconds(
            "refresh_lifetime_seconds", in: 60...31_536_000, "lifetime of a refresh token"
        ).defaulting(to: usual.core.refreshLifetime)
        let tokenNotice = ConfigKey.seconds(
            "token_notice_seconds", in: 0...3_600, "how long before its token expires a session is notified"
        ).defaulting(to: usual.core.tokenNotice)
        let signedTokenLifetime = ConfigKey.seconds(
            "signed_token_lifetime_seconds", in: 1...31_536_000, "longest lifetime of a signed token"
        ).defaulting(to: usual.core.signedTokenLifetime)

        let failedLoginsPerAddress = ConfigKey.integer(
            "failed_logins_per_address", in: counts, "failed logins allowed from one address"
        ).defaulting(to: usual.failedLogins.perAddress)
        let failedLoginsPerAccount = ConfigKey.integer(
            "failed_logins_per_account", in: counts, "failed logins allowed at one account from addresses new to it"
        ).defaulting(to: usual.failedLogins.perAccount)
        let failedLoginWindow = ConfigKey.seconds(
            "failed_login_seconds", in: 1...86_400, "as many again in this time, evenly; beyond that the answer is 429"
        ).defaulting(to: usual.failedLogins.window)
        let messagesPerSecond = ConfigKey.integer(
            "messages_per_second", in: counts, "what one connection may send continuously"
        ).defaulting(to: usual.core.messagesPerSecond)
        let messageBurst = ConfigKey.integer("message_burst", in: counts, "what it may send in one burst")
            .defaulting(to: usual.core.messageBurst)
        let connections = ConfigKey.integer("connections", in: 1...10_000_000, "connections in all")
            .unset(
                "as many as the limit on open files and a quarter of the memory beyond 64 MiB allow, with 10 KiB each, or "
                    + "96 with TLS, up to 200000")
        let connectionsPerAddress = ConfigKey.integer(
            "connections_per_address", in: 1...10_000_000, "from one address other than this machine's own"
        ).unset("an eighth of `connections`")
        let connectionsFromThisMachine = ConfigKey.integer(
            "connections_from_this_machine", in: 1...10_000_000,
            "from this machine's own addresses (127.0.0.0/8 and ::1) together, as a reverse proxy's; those of `trusted_proxies` count for "
                + "their clients once they name them"
        ).unset("half of `connections`")
        let loginMemory = ConfigKey.integer(
            "login_memory_mib", in: 1...65_536, unit: "MiB",
            "memory for all clients that have not logged in"
        ).unset("a sixteenth of what the machine or the control group has, between 4 and 16")
        let keptMemory = ConfigKey.integer(
            "kept_memory_mib", in: MemoryShares.leastKept >> 20...65_536, unit: "MiB",
            "what is kept for users: events, invites, pushes, calls, sessions, groups and push tokens"
        ).unset("a quarter of what the machine or the control group has beyond 64 MiB, between 8 and 256")

        let database = ConfigKey.outputFile(
            "database", advice: StoreError.writingAdvice,
            "what survives a restart ([exchange-database.md](exchange-database.md))"
        ).unset("nothing survives")
        let databaseDurability = ConfigKey.choice(
            "database_durability", of: ExchangeStore.Durability.self,
            "`full`: through a power cut, too; `normal`: through the end of the process, and faster"
        ).defaulting(to: usual.databaseDurability)
        let databaseIfCorrupt = ConfigKey.choice(
            "database_if_corrupt", of: ExchangeStore.CorruptFilePolicy.self,
            "`refuse` to start, or rename a damaged file and start with an empty one"
        ).defaulting(to: usual.databaseIfCorrupt)
        let store = ConfigKey<PostgresAddress>.parsed(
            "store", "address",
            "PostgreSQL in place of `database`, as postgresql://USER@HOST:PORT/NAME: a second exchange on it is a standby "
                + "([standby.md](standby.md))"
        ) { text throws(ConfigValueFault) in try PostgresAddress(text) }.unset("`database` is used")
        let storePassword = ConfigKey.secret("store_password", "the user's password there")
        let storeTLS = ConfigKey.choice(
            "store_sslmode", of: PostgresAddress.TLS.self, "how the server proves its identity, as in libpq"
        ).unset("`verify-full`, and `disable` for a server on this machine")
        let storeAuthorities = ConfigKey.path(
            "store_ca_file", readable: true, "PEM, the authorities that sign its certificate"
        ).unset("those of the system")
        let storeLease = ConfigKey.seconds(
            "store_lease_seconds", in: 1...60, "how long an owner that does not answer is waited for"
        ).defaulting(to: .seconds(3))
        let storeOwner = ConfigKey.url(
            "store_owner_url", schemes: ["https", "http"],
            "where clients find this exchange, for standbys to name while it owns the database")
        let storeReplication = ConfigKey.choice(
            "store_replication", of: PostgresConfiguration.Replication.self,
            "`none`: do not warn that the server has no synchronous standby"
        ).defaulting(to: .synchronous)
        let callRecordsDays = ConfigKey.integer(
            "call_records_days", in: 1...36_500, unit: "days", "how long records of calls are kept (`handset calls`)"
        ).defaulting(to: Int(usual.core.callRecordRetention / .seconds(86_400)))
        let callRecordsPerUser = ConfigKey.integer(
            "call_records_per_user", in: counts,
            "records kept of the calls that one user has made; past it the oldest are removed"
        ).defaulting(to: usual.callRecordLimits.perCaller)
        let callRecordsTotal = ConfigKey.integer("call_records_total", in: 1...100_000_000, "records kept in all")
            .defaulting(to: usual.callRecordLimits.total)
        let push = ConfigKey.section(
            "push", PushConfiguration.Keys.self, "invites to devices that are not connected ([push.md](push.md))")
        let monitoring = ConfigKey.section(
            "monitoring", MonitoringConfiguration.Keys.self,
            "where it shows metrics and health ([monitoring.md](monitoring.md)); without this section, nowhere")
        let traces = ConfigKey.section(
            "traces", TraceConfiguration.Keys.self,
            "where it sends its part of each call's trace ([tracing.md](tracing.md)); without this section, nowhere")
        let control = ConfigKey.section(
            "control", ControlSection.Keys.self,
            "where an operator acts on it while it runs ([exchange-control.md](exchange-control.md)); without this section, nowhere"
        )

        private static let counts = 1...1_000_000
    }
}

/// Reading the section `exchange` of a configuration file.
extension ExchangeConfiguration {
    /// Reads and judges a configuration file. `handset serve` and `handset check` both do so, with ``FileChecks/all``.
    ///
    /// - Parameters:
    ///   - fileChecks: Which of the files that it names are looked at.
    ///   - listen: Where to listen, in the place of what the file says, which is not judged then.
    /// - Throws: ``ConfigError`` with every problem that the file has.
    public static func read(
        path: String, fileChecks: FileChecks = .inputs, listen: ConfigEndpoint? = nil
    ) throws(ConfigError) -> ExchangeConfiguration {
        let root = try ConfigDocument.read(path: path, fileChecks: fileChecks)
        var problems: [ConfigProblem] = []
        var configuration = ExchangeConfiguration(root, listen: listen, &problems)
        configuration.warnings = try problems.verdict()
        return configuration
    }

    /// Reads only the section `control` of a file, so that a client of the exchange needs none of its secrets.
    ///
    /// - Returns: Nil if there is no such section.
    /// - Throws: ``ConfigError`` with the problems of the section.
    public static func control(inFile path: String) throws(ConfigError) -> ControlSection? {
        try ControlSection.read(path: path, \Keys.control, at: .exchange)
    }

    /// Reads the section, noting every problem rather than stopping at the first.
    ///
    /// - Parameter listen: Where to listen, in the place of what the section says, which is not judged then.
    public init(_ root: ConfigSection, listen: ConfigEndpoint? = nil, _ problems: inout [ConfigProblem]) {
        self.init()
        let section = KeyedSection(root, Keys.self, &problems)
        let before = problems.count
        let endpoint = section.value(\.listen, &problems)
        let isEndpointGood = problems.count == before
        host = (listen ?? endpoint).host
        port = (listen ?? endpoint).port
        if let section = section.value(\.certificate, &problems) { readCertificate(section, &problems) }
        section.read(\.plainText, into: &plainText, &problems)
        webSocketURL = section.value(\.webSocketURL, &problems)
        section.read(\.anonymous, into: &allowsAnonymous, &problems)
        section.read(\.presence, into: &core.tellsPresence, &problems)
        section.read(\.webPhone, into: &showsWebPhone, &problems)
        allowedOrigins = section.value(\.allowedOrigins, &problems) ?? []
        section.read(\.keepalive, into: &core.keepalive, &problems)
        section.read(\.resumeWindow, into: &core.resumeWindow, &problems)
        section.read(\.streamRinging, into: &streamRinging, &problems)

        readDatabase(section, &problems)
        if let section = section.value(\.push, &problems) {
            push = PushConfiguration(section, plainText: plainText, &problems)
        }
        monitoring = section.value(\.monitoring, &problems).flatMap { MonitoringConfiguration($0, &problems) }
        traces = section.value(\.traces, &problems).flatMap { TraceConfiguration($0, &problems) }
        control = section.value(\.control, &problems).flatMap { ControlSection($0, at: .exchange, &problems) }
        readTokens(section, &problems)
        readLimits(section, &problems)
        readBounds(section, &problems)

        if !section.has(\.usersFile) { section.require(\.users, &problems) }
        apps = (section.value(\.apps, &problems) ?? []).compactMap { RegisteredApp($0, &problems) }
        apiKeys = (section.value(\.apiKeys, &problems) ?? []).compactMap { SigningKey($0, &problems) }
        let servers = section.value(\.iceServers, &problems) ?? []
        iceServers = servers.compactMap { ICEServerConfiguration($0, &problems) }
        let accounts = section.value(\.users, &problems) ?? []
        users = Account.list(accounts, &problems)
        for account in accounts where account.has(\.enrollmentHashes) {
            problems.append(
                account.problem(
                    \.enrollmentHashes, "must be in the users file: the exchange writes there who has joined"))
        }
        readUsersFile(section, &problems)
        readTrunks(section, &problems)
        if listen == nil, isEndpointGood { judgeListening(section, &problems) }
    }

    private mutating func readCertificate(
        _ section: KeyedSection<Certificate.Keys>, _ problems: inout [ConfigProblem]
    ) {
        guard section.has(\.authority) else {
            section.rejectIdle(\.folder, "is for authority: own", &problems)
            section.rejectIdle(\.names, "is for authority: own", &problems)
            section.require(\.chainFile, &problems)
            section.require(\.keyFile, &problems)
            certificate = Certificate(section, &problems)
            return
        }
        for key in [\Certificate.Keys.chainFile, \.keyFile] {
            section.rejectIdle(key, "is given together with authority; keep one of them", &problems)
        }
        section.require(\.folder, &problems)
        guard section.value(\.authority, &problems) != nil, let folder = section.value(\.folder, &problems) else {
            return
        }
        let names = section.value(\.names, &problems) ?? []
        let authority = OwnAuthority(folder: folder, names: names.isEmpty ? Self.ownNames(listen: host) : names)
        ownAuthority = authority
        guard section.fileChecks == .all else { return }
        do throws(ExchangeError) {
            try authority.check(at: MonotonicClock.wallTime)
        } catch {
            problems.append(section.problem(\.folder, error.description))
        }
    }

    private mutating func readDatabase(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        databasePath = section.value(\.database, &problems)
        section.read(\.databaseDurability, into: &databaseDurability, &problems)
        section.read(\.databaseIfCorrupt, into: &databaseIfCorrupt, &problems)
        if section.fileChecks == .all, let path = databasePath,
            let fault = ExchangeStore.fault(ofFile: path, ifCorrupt: databaseIfCorrupt)
        {
            let message = "\"\(path)\" \(fault)"
            problems.append(
                databaseIfCorrupt == .refuse
                    ? section.problem(\.database, message) : section.warning(\.database, message))
        }
        core.callRecordRetention = .seconds(86_400 * section.value(\.callRecordsDays, &problems))
        section.read(\.callRecordsPerUser, into: &callRecordLimits.perCaller, &problems)
        section.read(\.callRecordsTotal, into: &callRecordLimits.total, &problems)
        readStore(section, &problems)
        guard !section.has(\.database) else { return }
        let reason = "is for a database, which is missing; give database, or remove this key"
        section.rejectIdle(\.databaseDurability, reason, &problems)
        section.rejectIdle(\.databaseIfCorrupt, reason, &problems)
        guard !section.has(\.store) else { return }
        section.rejectIdle(\.callRecordsDays, reason, &problems)
        section.rejectIdle(\.callRecordsPerUser, reason, &problems)
        section.rejectIdle(\.callRecordsTotal, reason, &problems)
    }

    private mutating func readStore(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let address = section.value(\.store, &problems)
        let password = section.value(\.storePassword, &problems)
        let tls = section.value(\.storeTLS, &problems)
        let authorities = section.value(\.storeAuthorities, &problems)
        let lease = section.value(\.storeLease, &problems)
        let replication = section.value(\.storeReplication, &problems)
        let owner = section.value(\.storeOwner, &problems)
        guard section.has(\.store) else {
            let reason = "is for a store, which is missing; give store, or remove this key"
            section.rejectIdle(\.storePassword, reason, &problems)
            section.rejectIdle(\.storeTLS, reason, &problems)
            section.rejectIdle(\.storeAuthorities, reason, &problems)
            section.rejectIdle(\.storeLease, reason, &problems)
            section.rejectIdle(\.storeReplication, reason, &problems)
            section.rejectIdle(\.storeOwner, reason, &problems)
            return
        }
        section.rejectIdle(\.database, "is given together with store; keep one of them", &problems)
        guard !section.has(\.database), var address else { return }
        (address.tls, address.authorities) = (tls, authorities)
        var postgres = PostgresConfiguration(address: address)
        (postgres.password, postgres.lease, postgres.replication) = (password, lease, replication)
        postgres.ownerURL = owner
        self.postgres = postgres
        guard section.fileChecks == .all else { return }
        do throws(StoreError) {
            if let warning = try postgres.check() { problems.append(section.warning(\.store, warning)) }
        } catch {
            problems.append(section.problem(\.store, "cannot be used: \(error)"))
        }
    }

    private mutating func readTokens(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        section.read(\.tokenLifetime, into: &core.tokenLifetime, &problems)
        section.read(\.refreshLifetime, into: &core.refreshLifetime, &problems)
        section.read(\.tokenNotice, into: &core.tokenNotice, &problems)
        section.read(\.signedTokenLifetime, into: &core.signedTokenLifetime, &problems)
    }

    private mutating func readLimits(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        section.read(\.failedLoginsPerAddress, into: &failedLogins.perAddress, &problems)
        section.read(\.failedLoginsPerAccount, into: &failedLogins.perAccount, &problems)
        section.read(\.messagesPerSecond, into: &core.messagesPerSecond, &problems)
        section.read(\.messageBurst, into: &core.messageBurst, &problems)
        section.read(\.failedLoginWindow, into: &failedLogins.window, &problems)
        trustedProxies = section.value(\.trustedProxies, &problems) ?? []
    }

    private mutating func readTrunks(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let known = Set((users + fileUsers).map(\.id))
        var accounts: Set<UserID> = []
        var patterns: Set<NumberPattern> = []
        var bars: [(stem: TelephoneNumber, hole: ConfigProblem)] = []
        for section in section.value(\.trunks, &problems) ?? [] {
            guard let trunk = Trunk(section, &problems) else { continue }
            if !accounts.insert(trunk.user).inserted {
                problems.append(
                    section.problem(\.user, "is already the account of another trunk; each trunk needs its own"))
            }
            for pattern in trunk.numbers where !patterns.insert(pattern).inserted {
                problems.append(
                    section.problem(
                        \.numbers, "\"\(pattern)\" is already in the numbers of a trunk; a number has one route"))
            }
            // A users file that is not read here may have them.
            if section.fileChecks != .none || usersFile == nil {
                if !known.contains(trunk.user) {
                    problems.append(
                        section.warning(
                            \.user, "\"\(trunk.user)\" has no account yet, so this trunk cannot carry calls"))
                }
                for caller in trunk.callers.sorted() where !known.contains(caller) {
                    problems.append(section.warning(\.callers, "\"\(caller)\" has no account yet"))
                }
            }
            for pattern in trunk.numbers where trunk.callers.isEmpty && pattern.text.hasSuffix("*") {
                guard let stem = TelephoneNumber(String(pattern.text.dropLast())) else { continue }
                bars.append(
                    (
                        stem,
                        section.warning(
                            \.numbers,
                            "\"\(pattern)\" does not bar \(stem) itself, which another trunk takes: add \"\(stem)\"")
                    ))
            }
            core.trunks.append(trunk)
        }
        // `*` is one digit or more.
        var table = NumberTable<Bool>()
        for trunk in core.trunks { for pattern in trunk.numbers { table.add(pattern, !trunk.callers.isEmpty) } }
        problems += bars.filter { table[$0.stem] == true }.map(\.hole)
    }

    private mutating func readUsersFile(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        guard let path = section.value(\.usersFile, &problems), section.fileChecks != .none else { return }
        let file = UsersFile(path: path)
        usersFile = file
        guard file.exists else {
            problems.append(
                section.warning(
                    \.usersFile,
                    "\"\(path)\" does not exist, so there are no accounts until `handset user add` makes it"))
            return
        }
        do throws(ConfigError) {
            fileUsers = try file.read(beside: users)
        } catch {
            problems += error.problems
        }
    }
}

/// Reading who may come to an exchange, and how many.
extension ExchangeConfiguration {
    private mutating func readBounds(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        connections = section.value(\.connections, &problems)
        connectionsPerAddress = section.value(\.connectionsPerAddress, &problems)
        connectionsFromThisMachine = section.value(\.connectionsFromThisMachine, &problems)
        loginMemoryBytes = section.value(\.loginMemory, &problems).map { $0 << 20 }
        keptMemoryBytes = section.value(\.keptMemory, &problems).map { $0 << 20 }
        allowedHosts = section.value(\.allowedHosts, &problems) ?? []
    }

    /// What clients without a login may take up together.
    var loginShare: Int { loginMemoryBytes ?? MemoryShares.logins(MachineMemory.limitBytes) }

    /// How memory is shared out.
    var memoryShares: MemoryShares {
        keptMemoryBytes.map { MemoryShares(kept: $0) } ?? .fitting(MachineMemory.limitBytes)
    }
}
