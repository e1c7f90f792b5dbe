public import CallControl
public import ConfigReader
public import SIPClient
public import SignalingClient

/// The server and the account that a device logs in with.
public struct AccountConfiguration: Sendable {
    /// Where `handset serve` listens by default.
    public static let defaultServer = "http://127.0.0.1:8555"

    /// Base URL of login (contract AUTH-1, 3).
    public var authURL: String
    /// Base URL of identities (AUTH-2).
    public var identityURL: String
    /// Base URL of the connection's resources (CONN-1).
    public var eventsURL: String
    /// Base URLs of further exchanges on the same database.
    public var moreServers: [String] = []
    /// The application's key and secret (AUTH-1); the key is what other services call an application id or an API key.
    public var appKey = "demo"
    /// See ``appKey``.
    public var appSecret = Secret("demo")
    /// How to log in.
    public var credential: Credential
    /// A PEM file of certificates to trust besides the system's.
    public var trustRoots: String?
    /// Speak without TLS to a server that is not on this machine.
    public var allowsPlainText = false

    /// Where the login is kept, so that a device that starts again needs no secret (AUTH-10).
    public var sessionFile: String?
    /// Where the key of ``Credential-swift.enum/key(user:_:)`` came from.
    public private(set) var keyFile: String?
    /// The session that a signed token is good for, joined after each login (AUTH-5).
    public var session: RoomName?
    /// Who may be called on a stranger's word: by a transfer that a peer asks for, a redirection, or a request of a bot's server. With
    /// nil that is no user, except that a peer at an exchange may ask for a transfer to any user there.
    public var callees: CalleeList?
    /// An account at a SIP server, which has none of the rest but ``trustRoots`` and ``allowsPlainText``; nil for one at an
    /// exchange.
    public var sip: SIPServiceConfiguration?

    /// Where a SIP account keeps the identifier by which its server knows this device again.
    public var instanceFile: String? { sip?.instanceFile }

    /// The files in which the account keeps what its next start needs, and the keys that name them.
    var keptFiles: [(file: String, key: String)] {
        let session = sessionFile.map { [($0, "account.session_file")] } ?? []
        return session + (instanceFile.map { [($0, "account.sip.instance_file")] } ?? [])
    }

    /// How to log in.
    public enum Credential: Sendable {
        /// With a media token (AUTH-1).
        case mediaToken(Secret)
        /// With a name and a password.
        case password(user: String, Secret)
        /// With a user's long-lived access token (AUTH-4).
        case accessToken(user: String, TokenSource)
        /// With an expiring token that opens sessions directly: a user's, or one signed for a session (AUTH-4, AUTH-5).
        case sessionToken(user: String?, TokenSource)
        /// With a key of the device's own, which has joined by a code (AUTH-13).
        case key(user: String, DeviceLoginKey)
        /// As a guest, who may only join rooms (AUTH-3).
        case anonymous(name: String)
        /// With nothing but what ``sessionFile`` has from an earlier login.
        case kept
    }

    /// Makes an account whose three base URLs are one server's.
    public init(server: String, credential: Credential = .anonymous(name: "guest")) {
        authURL = server
        identityURL = server
        eventsURL = server
        self.credential = credential
    }

    /// Takes all three base URLs from one server's.
    public mutating func use(server: String) {
        moreServers = []
        authURL = server
        identityURL = server
        eventsURL = server
    }

    /// The keys of the section `account`.
    struct Keys: ConfigKeys {
        private static let schemes = ["http", "https"]

        let server = ConfigKey.url(
            "server", schemes: schemes, "the service's base URL; http:// is for this machine only"
        )
        .defaulting(to: defaultServer)
        let authURL = ConfigKey.url("auth_url", schemes: schemes, "base URL of logins").unset("that of `server`")
        let identityURL = ConfigKey.url("identity_url", schemes: schemes, "base URL of identities").unset(
            "that of `server`")
        let eventsURL = ConfigKey.url("events_url", schemes: schemes, "base URL of the connection").unset(
            "that of `server`")
        let moreServers = ConfigKey<[String]>.list(
            "more_servers", of: "URLs",
            "further exchanges on the database of `server`, which are asked while that one is a standby or cannot be reached "
                + "([standby.md](standby.md))"
        ) { $0 }.unset("none")
        let appKey = ConfigKey<String>.parsed(
            "app_key", "text", "the program that logs in, as the service knows it, without a colon", show: \.self
        ) { text throws(ConfigValueFault) in
            // Key and secret travel as one text with a colon between them (RFC 7617 §2).
            if !text.contains(":") { return text }
            throw ConfigValueFault("must not contain a colon")
        }.defaulting(to: AccountConfiguration(server: defaultServer).appKey)
        let appSecret = ConfigKey.secret("app_secret", "the program's secret")
            .unset("`\(AccountConfiguration(server: defaultServer).appSecret.revealed)`")
        let trustRoots = ConfigKey.path(
            "trust_roots", readable: true, "PEM certificates to trust besides the system's")
        let allowPlainText = ConfigKey.bool(
            "allow_plain_text",
            "http://, or SIP without TLS, to another machine, which can be intercepted on the network"
        ).defaulting(to: false)
        let kind = ConfigKey.choice("kind", of: Credential.Kind.self, "how to log in ([accounts.md](accounts.md))")
            .unset("what the other keys show")
        let user = ConfigKey.nameText("user", of: "the user's id", "the user, where the kind needs it")
        let mediaToken = ConfigKey.secret("media_token", "for `kind: media_token`")
        let password = ConfigKey.secret("password", "for `kind: password` and `sip`")
        let accessToken = ConfigKey.secret(
            "access_token", "for `kind: access_token`; the file is read again at each login")
        let token = ConfigKey.secret(
            "token", "for `kind: session_token` and `signed_token`; the file is read again for each new token")
        let tokenCommand = ConfigKey.command("token_command", "prints such a token, and is run for each new one")
        let keyFile = ConfigKey.path(
            "key_file", readable: true, "for `kind: key`: the device's private key, which `handset enroll` makes")
        let enrollment = ConfigKey.string("enrollment", "for `kind: key`: what the exchange calls this enrolment")
        let anonymous = ConfigKey.string("anonymous", "for `kind: anonymous`: a name without an account")
        let session = ConfigKey<RoomName>.name(
            "session", of: "the session's name", "the one session that a signed token is good for")
        let sessionFile = ConfigKey.outputFile(
            "session_file", "keeps the login (mode 0600): a device that starts again needs no secret")
        let callees = ConfigKey<[CalleePattern]>.callees(
            "callees that strangers may choose, by a transfer, a redirection or a bot's server: names, `team-*`, `+4930*`, `2??`; with "
                + "`@HOST` at another service ([security.md](security.md#calls-on-a-strangers-word))"
        ).unset("none; at an exchange any user by a transfer")
        let sip = ConfigKey.section(
            "sip", SIPServiceConfiguration.Keys.self, "for `kind: sip`: the SIP account ([sip.md](sip.md))")
    }

    init(_ section: KeyedSection<Keys>, server: String?, _ problems: inout [ConfigProblem]) {
        var ignored: [ConfigProblem] = []  // Reported where the kind is read for good.
        if section.has(\.kind), section.value(\.kind, &ignored) == .sip {
            self.init(sip: section, server: server, &problems)
            return
        }
        section.rejectIdle(\.sip, "is for kind: sip", &problems)
        self.init(server: section.value(\.server, &problems))
        section.read(\.authURL, into: &authURL, &problems)
        section.read(\.identityURL, into: &identityURL, &problems)
        section.read(\.eventsURL, into: &eventsURL, &problems)
        moreServers = section.value(\.moreServers, &problems) ?? []
        section.read(\.appKey, into: &appKey, &problems)
        section.read(\.appSecret, into: &appSecret, &problems)
        trustRoots = Self.trustRoots(section, &problems)
        allowsPlainText = section.value(\.allowPlainText, &problems)
        if let server { use(server: server) } else { judgeAddresses(section, &problems) }
        sessionFile = section.value(\.sessionFile, &problems)
        callees = section.value(\.callees, &problems).map { CalleeList($0) }
        session = section.value(\.session, &problems)
        if let credential = Credential(section, keeps: sessionFile != nil, &problems) {
            self.credential = credential
            if case .key = credential {
                var ignored: [ConfigProblem] = []  // Reported where the key is read.
                keyFile = section.value(\.keyFile, &ignored)
            }
            if session != nil { warnOfSession(section, &problems) }
        }
        judgeSessionFile(section, &problems)
        if server == nil { warnOfTrustRoots(section, &problems) }
    }

    /// Where the login is kept.
    var sessionStore: SessionStore? {
        sessionFile.map { SessionStore(path: $0, application: appKey, server: authURL) }
    }
}

// Values that the service's client refuses are reported with their position.
extension AccountConfiguration {
    fileprivate func judgeAddresses(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        var isServerJudged = false
        for (key, address) in [(\Keys.authURL, authURL), (\.identityURL, identityURL), (\.eventsURL, eventsURL)] {
            let isServer = !section.has(key)
            if isServer, isServerJudged { continue }
            isServerJudged = isServerJudged || isServer
            do throws(SignalingError) {
                try HandsetServiceConfiguration.check(address: address, allowsPlainText ? .allowed : .loopbackOnly)
            } catch {
                let message = "\(error.cause). \(error.advice)"
                problems.append(isServer ? section.problem(\.server, message) : section.problem(key, message))
            }
        }
        for address in moreServers {
            do throws(SignalingError) {
                try HandsetServiceConfiguration.check(address: address, allowsPlainText ? .allowed : .loopbackOnly)
            } catch {
                problems.append(section.problem(\.moreServers, "\(error.cause). \(error.advice)"))
            }
        }
    }

    fileprivate func judgeSessionFile(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        guard section.fileChecks == .all, let store = sessionStore else { return }
        do throws(SignalingError) {
            let content = try store.look()
            guard case .kept = credential else { return }
            let missing: String
            switch content {
            case .login: return
            case .nothing: missing = "contains no login"
            case .foreign: missing = "contains a login of another app_key or at another server"
            }
            let message =
                "\"\(store.path)\" \(missing), and the account has no other credential; start once with a secret, such as "
                + "media_token_file, and the login is kept there"
            problems.append(section.warning(\.sessionFile, message))
        } catch {
            problems.append(section.problem(\.sessionFile, "\"\(store.path)\": \(error.cause). \(error.advice)"))
        }
    }

    fileprivate func warnOfTrustRoots(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let isPlain = [authURL, identityURL, eventsURL].allSatisfy { !$0.lowercased().hasPrefix("https://") }
        guard section.has(\.trustRoots), isPlain,
            !problems.contains(where: { $0.key == section.problem(\.trustRoots, "").key })
        else {
            return
        }
        problems.append(
            section.warning(\.trustRoots, "is for https://, and no address here begins so; nothing uses it"))
    }

    /// The session is joined in any case.
    fileprivate func warnOfSession(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        switch credential {
        case .sessionToken, .kept: return
        case .mediaToken, .password, .accessToken, .key, .anonymous: break
        }
        problems.append(
            section.warning(
                \.session,
                "is what a signed token is limited to, and the account has another credential; here it is one more room to "
                    + "join, which `rooms` is for"))
    }

    static func trustRoots(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) -> String? {
        guard let path = section.value(\.trustRoots, &problems) else { return nil }
        guard section.fileChecks != .none else { return path }
        do throws(SignalingError) {
            try HandsetServiceConfiguration.check(trustRootFile: path)
        } catch {
            problems.append(section.problem(\.trustRoots, "\"\(path)\": \(error.cause). \(error.advice)"))
        }
        return path
    }
}
