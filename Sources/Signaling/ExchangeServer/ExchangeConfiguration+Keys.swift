public import ConfigReader
import ExchangeCore
import HTTPTransport
import Core
import SignalWire

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
            let host = ["https://", "http://"].lazy.filter(text.hasPrefix).map { text.dropFirst($0.count) }.first
            if let host, WebOrigin.isHost(host) { return text }
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

        private static let counts = 1...1_000_000
    }
}

extension ExchangeConfiguration.Certificate {
    /// Who signs the certificate, if no file has one.
    enum Authority: String, CaseIterable, Sendable {
        case own
    }

    /// The keys of the section `certificate`.
    struct Keys: ConfigKeys {
        let chainFile = ConfigKey.path("chain_file", readable: true, "PEM, the exchange's own certificate first")
            .unset("required without `authority`")
        let keyFile = ConfigKey.path("key_file", readable: true, "PEM, the private key")
            .unset("required without `authority`")
        let authority = ConfigKey.choice(
            "authority", of: Authority.self,
            "`own`: the exchange makes its certificates itself, under an authority of its own ([tls.md](tls.md))")
        let folder = ConfigKey.outputFolder(
            "folder", "with `authority: own`, which requires it: keeps the authority, and its private key (mode 0600)")
        let names = ConfigKey.list(
            "names", of: "hosts", "with `authority: own`: the names and addresses that clients call the exchange by"
        ) { text throws(ConfigValueFault) in
            if let host = HostName(text), !host.isWildcard { return host.text }
            throw ConfigValueFault(
                "\"\(text)\" must be a host name or an address without a port, such as calls.example.org or 192.0.2.1")
        }.unset("the host of `listen`, or the machine's name if that is all addresses")
    }
}

extension Trunk {
    /// The keys of one of `trunks`.
    struct Keys: ConfigKeys {
        private static let usual = Trunk(user: "trunk", numbers: [])

        let user = ConfigKey<UserID>.identifier("user", "the account that `handset trunk` logs in to").required
        let numbers = ConfigKey<[NumberPattern]>.list(
            "numbers", of: "patterns",
            "numbers that go this way: digits, `?` for any digit, `*` at the end for one or more; of several patterns that match, "
                + "the one with the most digits counts"
        ) { text throws(ConfigValueFault) in
            if let pattern = NumberPattern(text) { return pattern }
            throw ConfigValueFault(
                "\"\(text)\" must be a pattern of numbers, such as 2??, +4930* or 112: an optional +, then digits and ?, and "
                    + "a * at the end at most")
        }.unset("calls come in alone")
        let callers = ConfigKey<[UserID]>.identifiers("callers", "users who may call these numbers").unset("none")
        let callsPerHour = ConfigKey.integer(
            "calls_per_hour", in: 1...1_000, "calls that each of them may begin within an hour"
        ).defaulting(to: usual.callsPerHour)
        let callsAtOnce = ConfigKey.integer("calls_at_once", in: 1...100, "calls that each of them may have at once")
            .defaulting(to: usual.callsAtOnce)
    }
}

extension RegisteredApp {
    /// The keys of one of `apps`.
    struct Keys: ConfigKeys {
        let key = ConfigKey<ApplicationKey>.identifier("key", "the app's name, without a colon").required
        let secretHash = ConfigKey.digest("secret_hash", "of its secret, from `handset user hash-token`")
        let secret = ConfigKey.secret("secret", suggestsName: true, "its secret").unset(
            "required without `secret_hash`")
    }
}

extension SigningKey {
    /// The keys of one of `api_keys`.
    struct Keys: ConfigKeys {
        let key = ConfigKey<ApplicationKey>.identifier("key", "the signer's name").required
        let secret = ConfigKey.secret(
            "secret", suggestsName: true, "at least \(minimumSecretBytes) bytes, as `openssl rand -hex 32` makes them"
        ).required
    }
}

extension Account {
    /// The keys of one of `users`.
    struct Keys: ConfigKeys {
        let id = ConfigKey<UserID>.identifier("id", "the user's id").required
        let publicIDs = ConfigKey<[UserID]>.identifiers(
            "public_ids", "other ids by which the user is called, \(SignalLimits.publicIDs) at most")
        let routingID = ConfigKey.string("routing_id", "what calls to the user are routed by").unset("that of `id`")
        let email = ConfigKey.string("email", "the user's address")
        let passwordHash = ConfigKey.parsed("password_hash", "scrypt hash", "from `handset user hash-password`") {
            text throws(ConfigValueFault) in
            if let hash = PasswordHash(text) { return hash }
            throw ConfigValueFault("must be of the form $scrypt$ln=15,r=8,p=1$SALT$HASH, with at most 128 MiB")
        }
        let password = ConfigKey.secret("password", suggestsName: true, "in place of `password_hash`")
        let mediaTokenHashes = ConfigKey.digests(
            "media_token_hashes", "of media tokens, from `handset user hash-token`")
        let mediaToken = ConfigKey.secret("media_token", suggestsName: true, "one more media token")
        let accessTokenHashes = ConfigKey.digests(
            "access_token_hashes", "of long-lived tokens, for a login with user id and token")
        let accessToken = ConfigKey.secret("access_token", suggestsName: true, "one more such token")
        let streamTokenHashes = ConfigKey.digests(
            "stream_token_hashes", "of tokens that may stream to this user, and nothing else ([whip.md](whip.md))")
        let streamToken = ConfigKey.secret("stream_token", suggestsName: true, "one more such token")
        let publicKeys = ConfigKey.list(
            "public_keys", of: "keys", "of devices that log in by key, which `handset enroll` adds"
        ) { text throws(ConfigValueFault) in
            if let key = DeviceKey(text) { return key }
            throw ConfigValueFault("must be of the form ed25519.KEY.ENROLLMENT, as an enrolment writes it")
        }
        let enrollmentHashes = ConfigKey.list(
            "enrollment_hashes", of: "hashes", "of codes of `handset user enroll`, in a users file alone"
        ) { text throws(ConfigValueFault) in
            if let enrollment = EnrollmentRecord(text) { return enrollment }
            throw ConfigValueFault("must be as `handset user enroll` writes it")
        }
        let loginsSince = ConfigKey.integer(
            "logins_since", in: 0...253_402_300_799, unit: "s since 1970", "signed tokens from before that are refused")
        let added = ConfigKey.integer(
            "added", in: 0...253_402_300_799_999, unit: "ms since 1970",
            "when `handset user` added the user: one of the same name with another time is another user")
    }
}
