public import ConfigReader
import ExchangeStore
import SignalWire
import SignedTokens
import Timekeeping

/// Reading the section `exchange` of a configuration file.
extension ExchangeConfiguration {
    private static let keys =
        [
            "listen", "certificate", "plain_text", "websocket_url", "web_phone", "allowed_origins", "apps", "users",
            "anonymous", "presence", "ice_servers", "keepalive_seconds", "resume_window_seconds",
            "token_lifetime_seconds", "stream_ringing_seconds", "users_file", "api_keys", "refresh_lifetime_seconds",
            "token_notice_seconds", "signed_token_lifetime_seconds", "failed_logins_per_address",
            "failed_logins_per_account", "failed_login_seconds", "messages_per_second", "message_burst",
            "trusted_proxies", "database", "database_durability", "database_if_corrupt", "call_records_days",
            "call_records_per_user", "call_records_total",
            "push", "connections", "connections_per_address", "login_memory_mib", "kept_memory_mib", "allowed_hosts",
        ]

    /// Reads the section, noting every problem rather than stopping at the first.
    public init(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        self.init()
        if let endpoint = section.endpoint("listen", &problems) {
            host = endpoint.host
            port = endpoint.port
        }
        certificate = section.section("certificate", &problems).flatMap { Certificate($0, &problems) }
        plainText = section.enumeration("plain_text", of: PlainText.self, &problems) ?? plainText
        webSocketURL = section.url("websocket_url", schemes: ["ws", "wss"], &problems)
        allowsAnonymous = section.bool("anonymous", &problems) ?? allowsAnonymous
        tellsPresence = section.bool("presence", &problems) ?? tellsPresence
        showsWebPhone = section.bool("web_phone", &problems) ?? showsWebPhone
        allowedOrigins = Self.origins(section, &problems)
        keepalive = section.seconds("keepalive_seconds", in: 1...300, &problems) ?? keepalive
        resumeWindow = section.seconds("resume_window_seconds", in: 0...600, &problems) ?? resumeWindow
        streamRinging = section.seconds("stream_ringing_seconds", in: 1...120, &problems) ?? streamRinging

        readDatabase(section, &problems)
        if let section = section.section("push", &problems) {
            push = PushConfiguration(section, plainText: plainText, &problems)
        }
        readTokens(section, &problems)
        readLimits(section, &problems)
        readBounds(section, &problems)

        section.require(section.has("users_file") ? ["apps"] : ["apps", "users"], &problems)
        apps = (section.sections("apps", &problems) ?? []).compactMap { RegisteredApp($0, &problems) }
        apiKeys = (section.sections("api_keys", &problems) ?? []).compactMap { SigningKey($0, &problems) }
        let servers = section.sections("ice_servers", &problems) ?? []
        iceServers = servers.compactMap { ICEServerConfiguration($0, &problems) }
        users = Account.list(section, &problems)
        readUsersFile(section, &problems)
        section.rejectUnknownKeys(known: Self.keys, &problems)
    }

    private mutating func readDatabase(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        databasePath = section.outputFile("database", &problems)
        databaseDurability =
            section.enumeration("database_durability", of: ExchangeStore.Durability.self, &problems)
            ?? databaseDurability
        databaseIfCorrupt =
            section.enumeration("database_if_corrupt", of: ExchangeStore.CorruptFilePolicy.self, &problems)
            ?? databaseIfCorrupt
        let days = section.integer("call_records_days", in: 1...36_500, &problems)
        callRecordRetention = days.map { .seconds(86_400 * $0) } ?? callRecordRetention
        callRecordLimits.perCaller =
            section.integer("call_records_per_user", in: 1...1_000_000, &problems) ?? callRecordLimits.perCaller
        callRecordLimits.total =
            section.integer("call_records_total", in: 1...100_000_000, &problems) ?? callRecordLimits.total
    }

    private mutating func readTokens(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        tokenLifetime = section.seconds("token_lifetime_seconds", in: 1...2_592_000, &problems) ?? tokenLifetime
        refreshLifetime =
            section.seconds("refresh_lifetime_seconds", in: 60...31_536_000, &problems) ?? refreshLifetime
        tokenNotice = section.seconds("token_notice_seconds", in: 0...3_600, &problems) ?? tokenNotice
        signedTokenLifetime =
            section.seconds("signed_token_lifetime_seconds", in: 1...31_536_000, &problems) ?? signedTokenLifetime
    }

    private mutating func readLimits(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        func count(_ key: String, _ value: inout Int) {
            value = section.integer(key, in: 1...1_000_000, &problems) ?? value
        }
        count("failed_logins_per_address", &failedLogins.perAddress)
        count("failed_logins_per_account", &failedLogins.perAccount)
        count("messages_per_second", &messagesPerSecond)
        count("message_burst", &messageBurst)
        failedLogins.window = section.seconds("failed_login_seconds", in: 1...86_400, &problems) ?? failedLogins.window
        trustedProxies = (section.list("trusted_proxies", &problems) ?? []).filter { text in
            if ClientAddress(text) != nil { return true }
            problems.append(section.problem("trusted_proxies", "\"\(text)\" must be an address, such as 127.0.0.1"))
            return false
        }
    }

    private mutating func readUsersFile(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        guard let path = section.path("users_file", &problems), section.fileChecks != .none else { return }
        let file = UsersFile(path: path)
        usersFile = file
        do throws(ConfigError) {
            fileUsers = try file.read(beside: users)
        } catch {
            problems += error.problems
        }
    }

    private static func origins(_ section: ConfigSection, _ problems: inout [ConfigProblem]) -> [String] {
        (section.list("allowed_origins", &problems) ?? []).filter { text in
            let host = ["https://", "http://"].lazy.filter(text.hasPrefix).map { text.dropFirst($0.count) }.first
            if let host, WebOrigin.isHost(host) { return true }
            problems.append(
                section.problem("allowed_origins", "\"\(text)\" must be an origin, such as https://calls.example.org"))
            return false
        }
    }
}

extension ExchangeConfiguration.Certificate {
    fileprivate init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["chain_file", "key_file"], &problems)
        let chain = section.path("chain_file", readable: true, &problems)
        let key = section.path("key_file", readable: true, &problems)
        section.rejectUnknownKeys(known: ["chain_file", "key_file"], &problems)
        guard let chain, let key else { return nil }
        self.init(chainPath: chain, keyPath: key)
        guard section.fileChecks == .all else { return }
        do throws(ExchangeError) {
            _ = try TLSContext.load(self)
        } catch {
            problems.append(section.problem("chain_file", "\(error)"))
        }
    }
}

extension RegisteredApp {
    fileprivate init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["key"], &problems)
        let key: ApplicationKey? = section.identifier("key", &problems)
        if let key, key.text.contains(":") { problems.append(section.problem("key", "must not contain a colon")) }
        let digest = section.digest("secret_hash", &problems)
        let secret = section.secret("secret", required: !section.has("secret_hash"), &problems)
        section.rejectUnknownKeys(
            known: ["key", "secret_hash"] + ConfigSection.secretKeys("secret") + ["secret"], &problems)
        guard let key, let digest = digest ?? secret.map({ SecretDigest(of: $0.revealed) }) else { return nil }
        self.init(key: key, secret: digest)
    }
}

extension SigningKey {
    fileprivate init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["key"], &problems)
        let key: ApplicationKey? = section.identifier("key", &problems)
        let secret = section.secret("secret", required: true, &problems)
        section.rejectUnknownKeys(known: ["key", "secret"] + ConfigSection.secretKeys("secret"), &problems)
        guard let key, let secret else { return nil }
        guard secret.revealed.utf8.count >= Self.minimumSecretBytes else {
            let message = "must have at least \(Self.minimumSecretBytes) bytes; `openssl rand -hex 32` makes some"
            problems.append(section.problem(section.has("secret_file") ? "secret_file" : "secret_env", message))
            return nil
        }
        self.init(name: key, secret: secret.revealed)
    }
}

extension Account {
    /// The accounts under `users`, each id in them only once.
    static func list(_ section: ConfigSection, _ problems: inout [ConfigProblem]) -> [Account] {
        var owners: [UserID: UserID] = [:]
        return (section.sections("users", &problems) ?? []).compactMap { user in
            Account(user, &problems).map { account in
                for id in Set([account.id] + account.publicIDs) {
                    if let owner = owners[id] {
                        problems.append(user.problem("id", "\"\(id)\" is the id of \(owner) already"))
                    }
                    owners[id] = account.id
                }
                return account
            }
        }
    }

    fileprivate init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["id"], &problems)
        let id: UserID? = section.identifier("id", &problems)
        var password: Credential?
        if let text = section.string("password_hash", &problems) {
            password = PasswordHash(text).map(Credential.hash)
            if password == nil {
                problems.append(
                    section.problem(
                        "password_hash", "must be of the form $scrypt$ln=15,r=8,p=1$SALT$HASH, with at most 128 MiB"))
            }
        } else if let secret = section.secret("password", &problems) {
            password = .digest(SecretDigest(of: secret.revealed))
            if let problem = PasswordRule.problem(with: secret.revealed) {
                let key = section.has("password_file") ? "password_file" : "password_env"
                problems.append(section.problem(key, problem))
            }
        }

        let mediaTokens = section.tokens("media_token", &problems)
        let streamTokens = section.tokens("stream_token", &problems)
        let accessTokens = section.tokens("access_token", &problems)

        let publicIDs: [UserID] = section.identifiers("public_ids", &problems)
        if publicIDs.count > SignalLimits.publicIDs {
            problems.append(section.problem("public_ids", "must name \(SignalLimits.publicIDs) ids at most"))
        }
        let routingID = section.string("routing_id", &problems)
        let email = section.string("email", &problems)
        let since = section.integer("logins_since", in: 0...253_402_300_799, &problems).map(Int64.init)
        section.rejectUnknownKeys(known: Self.keys, &problems)
        guard let id else { return nil }
        self.init(
            id: id, publicIDs: publicIDs, routingID: routingID, password: password, mediaTokens: mediaTokens,
            streamTokens: streamTokens, accessTokens: accessTokens, email: email, loginsSince: since)
    }

    private static let keys =
        [
            "id", "public_ids", "routing_id", "email", "password_hash", "media_token_hashes", "stream_token_hashes",
            "access_token_hashes", "logins_since",
        ]
        + ["password", "media_token", "stream_token", "access_token"].flatMap { [$0] + ConfigSection.secretKeys($0) }
}

extension ConfigSection {
    fileprivate static let digestForm = "must be a SHA-256 digest: 64 hexadecimal digits"

    /// The digests under `NAME_hashes`, and that of the secret `NAME` if it is given.
    fileprivate func tokens(_ name: String, _ problems: inout [ConfigProblem]) -> [SecretDigest] {
        var tokens = (list("\(name)_hashes", &problems) ?? []).compactMap { text in
            let digest = SecretDigest(hex: text)
            if digest == nil { problems.append(problem("\(name)_hashes", Self.digestForm)) }
            return digest
        }
        if let token = secret(name, &problems) { tokens.append(SecretDigest(of: token.revealed)) }
        return tokens
    }

    fileprivate func digest(_ key: String, _ problems: inout [ConfigProblem]) -> SecretDigest? {
        guard let text = string(key, &problems) else { return nil }
        let digest = SecretDigest(hex: text)
        if digest == nil { problems.append(problem(key, Self.digestForm)) }
        return digest
    }
}
