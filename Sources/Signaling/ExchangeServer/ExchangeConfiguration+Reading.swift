public import ConfigReader
import ExchangeCore
import HTTPTransport
import SignalWire
import Core

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
            try authority.check(at: WallClock.now)
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
        guard !section.has(\.database) else { return }
        let reason = "is for a database, which is missing; give database, or remove this key"
        section.rejectIdle(\.databaseDurability, reason, &problems)
        section.rejectIdle(\.databaseIfCorrupt, reason, &problems)
        section.rejectIdle(\.callRecordsDays, reason, &problems)
        section.rejectIdle(\.callRecordsPerUser, reason, &problems)
        section.rejectIdle(\.callRecordsTotal, reason, &problems)
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

extension ExchangeConfiguration.Certificate {
    fileprivate init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
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
    fileprivate init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
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
    fileprivate init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
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
    fileprivate init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
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
