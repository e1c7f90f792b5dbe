import ConfigReader
import ExchangeCore
import HTTPTransport
import Core
import SignalWire

// The sections of an exchange's configuration that are lists or have keys of their own: the keys of each, and how it is read.

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

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let chain = section.value(\.chainFile, &problems)
        let key = section.value(\.keyFile, &problems)
        guard let chain, let key else { return nil }
        self.init(chainPath: chain, keyPath: key)
        section.warnOfReaders(\.keyFile, key, &problems)
        guard section.fileChecks == .all else { return }
        do throws(CertificateFault) {
            let identity = try ServerTLS.identity(files)
            if let warning = CertificateFiles.warning(end: identity.end) {
                problems.append(section.warning(\.chainFile, "\"\(chain)\" \(warning)"))
            }
        } catch {
            let key = error.part == .chain ? \Keys.chainFile : \.keyFile
            problems.append(section.problem(key, "\"\(error.path)\" \(error.message)"))
        }
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

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let user = section.value(\.user, &problems)
        let numbers = section.value(\.numbers, &problems) ?? []
        let callers = section.value(\.callers, &problems) ?? []
        let callsPerHour = section.value(\.callsPerHour, &problems)
        let callsAtOnce = section.value(\.callsAtOnce, &problems)
        guard let user else { return nil }
        self.init(user: user, numbers: numbers)
        if callers.contains(user) {
            problems.append(section.problem(\.callers, "has the trunk's own account, by which calls come in"))
        }
        self.callers = Set(callers)
        self.callsPerHour = callsPerHour
        self.callsAtOnce = callsAtOnce
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

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let key = section.value(\.key, &problems)
        if let key, key.text.contains(":") { problems.append(section.problem(\.key, "must not contain a colon")) }
        let digest = section.value(\.secretHash, &problems)
        let secret =
            section.has(\.secretHash)
            ? section.value(\.secret, &problems) : section.requiredSecret(\.secret, &problems)
        guard let key, let digest = digest ?? secret.map({ SecretDigest(of: $0.revealed) }) else { return nil }
        self.init(key: key, secret: digest)
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

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let key = section.value(\.key, &problems)
        let secret = section.requiredSecret(\.secret, &problems)
        guard let key, let secret else { return nil }
        guard secret.revealed.utf8.count >= Self.minimumSecretBytes else {
            let message = "must have at least \(Self.minimumSecretBytes) bytes; `openssl rand -hex 32` makes some"
            problems.append(section.problem(\.secret, message))
            return nil
        }
        self.init(name: key, secret: secret.revealed)
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

    /// The accounts under `users`: what one is known by, no other is.
    ///
    /// - Parameter others: Those of the configuration, if these are of a file beside it.
    static func list(
        _ sections: [KeyedSection<Keys>], beside others: [Account] = [], _ problems: inout [ConfigProblem]
    ) -> [Account] {
        var known = KnownAccounts(others)
        return sections.compactMap { section in
            guard let account = Account(section, &problems) else { return nil }
            known.add(account, section, &problems)
            return account
        }
    }

    fileprivate init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let id = section.value(\.id, &problems)
        var password: Credential?
        if section.has(\.passwordHash) {
            password = section.value(\.passwordHash, &problems).map(Credential.hash)
        } else if let secret = section.value(\.password, &problems) {
            password = .digest(SecretDigest(of: secret.revealed))
            if let problem = PasswordRule.problem(with: secret.revealed) {
                problems.append(section.problem(\.password, problem))
            }
        }

        let mediaTokens = section.digests(\.mediaTokenHashes, \.mediaToken, &problems)
        let streamTokens = section.digests(\.streamTokenHashes, \.streamToken, &problems)
        let accessTokens = section.digests(\.accessTokenHashes, \.accessToken, &problems)

        let keys = section.value(\.publicKeys, &problems) ?? []
        let enrollments = section.value(\.enrollmentHashes, &problems) ?? []

        let publicIDs = section.value(\.publicIDs, &problems) ?? []
        if publicIDs.count > SignalLimits.publicIDs {
            problems.append(section.problem(\.publicIDs, "must name at most \(SignalLimits.publicIDs) ids"))
        }
        let routingID = section.value(\.routingID, &problems)
        let email = section.value(\.email, &problems)
        let since = section.value(\.loginsSince, &problems).map(Int64.init)
        let added = section.value(\.added, &problems).map(Int64.init)
        guard let id else { return nil }
        self.init(
            id: id, publicIDs: publicIDs, routingID: routingID, password: password, mediaTokens: mediaTokens,
            streamTokens: streamTokens, accessTokens: accessTokens, keys: keys, enrollments: enrollments, email: email,
            loginsSince: since, added: added)
    }
}
