public import ConfigReader
import ExchangeStore
import SignalWire
import Timekeeping

/// Reading the section `exchange` of a configuration file.
extension ExchangeConfiguration {
    private static let keys =
        [
            "listen", "certificate", "plain_text", "websocket_url", "web_phone", "allowed_origins", "apps", "users",
            "anonymous", "presence", "ice_servers", "keepalive_seconds", "resume_window_seconds",
            "token_lifetime_seconds", "stream_ringing_seconds", "database", "database_durability",
            "database_if_corrupt", "call_records_days",
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
        tokenLifetime = section.seconds("token_lifetime_seconds", in: 1...2_592_000, &problems) ?? tokenLifetime

        databasePath = section.path("database", &problems)
        databaseDurability =
            section.enumeration("database_durability", of: ExchangeStore.Durability.self, &problems)
            ?? databaseDurability
        databaseIfCorrupt =
            section.enumeration("database_if_corrupt", of: ExchangeStore.CorruptFilePolicy.self, &problems)
            ?? databaseIfCorrupt
        let days = section.integer("call_records_days", in: 1...36_500, &problems)
        callRecordRetention = days.map { .seconds(86_400 * $0) } ?? callRecordRetention

        section.require(["apps", "users"], &problems)
        apps = (section.sections("apps", &problems) ?? []).compactMap { RegisteredApp($0, &problems) }
        iceServers = (section.sections("ice_servers", &problems) ?? []).compactMap { ICEServer($0, &problems) }
        var owners: [String: String] = [:]
        users = (section.sections("users", &problems) ?? []).compactMap { user in
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
        section.rejectUnknownKeys(known: Self.keys, &problems)
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
    }
}

extension RegisteredApp {
    fileprivate init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["key"], &problems)
        let key = section.string("key", &problems)
        if let key, key.contains(":") { problems.append(section.problem("key", "must not contain a colon")) }
        let digest = section.digest("secret_hash", &problems)
        let secret = section.secret("secret", required: !section.has("secret_hash"), &problems)
        section.rejectUnknownKeys(
            known: ["key", "secret_hash"] + ConfigSection.secretKeys("secret") + ["secret"], &problems)
        guard let key, let digest = digest ?? secret.map({ SecretDigest(of: $0.revealed) }) else { return nil }
        self.init(key: key, secret: digest)
    }
}

extension ICEServer {
    fileprivate init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["urls"], &problems)
        let urls = section.list("urls", &problems)
        let username = section.string("username", &problems)
        let credential = section.secret("credential", &problems)
        section.rejectUnknownKeys(
            known: ["urls", "username"] + ConfigSection.secretKeys("credential") + ["credential"], &problems)
        guard let urls else { return nil }
        self.init(urls: urls, username: username, credential: credential.map { Redacted($0.revealed) })
    }
}

extension Account {
    fileprivate init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["id"], &problems)
        let id = section.string("id", &problems)
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
        }

        let mediaTokens = section.tokens("media_token", &problems)
        let streamTokens = section.tokens("stream_token", &problems)

        let publicIDs = section.list("public_ids", &problems) ?? []
        let routingID = section.string("routing_id", &problems)
        let email = section.string("email", &problems)
        section.rejectUnknownKeys(known: Self.keys, &problems)
        guard let id else { return nil }
        self.init(
            id: id, publicIDs: publicIDs, routingID: routingID, password: password, mediaTokens: mediaTokens,
            streamTokens: streamTokens, email: email)
    }

    private static let keys =
        ["id", "public_ids", "routing_id", "email", "password_hash", "media_token_hashes", "stream_token_hashes"]
        + ["password", "media_token", "stream_token"].flatMap { [$0] + ConfigSection.secretKeys($0) }
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
