internal import ConfigReader
internal import Files
internal import SignalingClient

// Which of the ways in an account takes: by `kind`, or by the keys that are given.
extension AccountConfiguration.Credential {
    /// The ways in, by the names of `kind`.
    enum Kind: String, CaseIterable {
        case mediaToken = "media_token"
        case password
        case accessToken = "access_token"
        case sessionToken = "session_token"
        case signedToken = "signed_token"
        case key
        case anonymous
        case kept
        /// At a SIP server, and read elsewhere.
        case sip

        /// The name of the key that shows this kind; nil if none does.
        func key(in section: Section) -> String? {
            switch self {
            case .mediaToken: section.name(\.mediaToken)
            case .password: section.name(\.password)
            case .accessToken: section.name(\.accessToken)
            case .sessionToken, .signedToken: section.name(\.token) ?? section.name(\.tokenCommand)
            case .key: section.name(\.keyFile)
            case .anonymous: section.name(\.anonymous)
            case .kept: section.name(\.sessionFile)
            case .sip: section.name(\.sip)
            }
        }

        /// Whether the file contains the secret itself, a problem that the kind's own reading reports.
        func isInTheClear(in section: Section) -> Bool {
            switch self {
            case .mediaToken: section.isInTheClear(\.mediaToken)
            case .password: section.isInTheClear(\.password)
            case .accessToken: section.isInTheClear(\.accessToken)
            case .sessionToken, .signedToken: section.isInTheClear(\.token)
            case .key, .anonymous, .kept, .sip: false
            }
        }
    }

    typealias Section = KeyedSection<AccountConfiguration.Keys>

    /// Reads how to log in; nil if a problem was noted.
    init?(_ section: Section, keeps: Bool, _ problems: inout [ConfigProblem]) {
        guard let kind = Self.kind(section, keeps: keeps, &problems) else { return nil }
        let user = section.value(\.user, &problems)
        let before = problems.count
        var credential: Self?
        switch kind {
        case .mediaToken: credential = section.requiredSecret(\.mediaToken, &problems).map { .mediaToken($0) }
        case .password:
            let password = section.requiredSecret(\.password, &problems)
            if let user = Self.required(user, section, "with a password", &problems), let password {
                credential = .password(user: user, password)
            }
        case .accessToken:
            // Read here, to report problems at once; the file is read again at each login.
            let token = section.requiredSecret(\.accessToken, &problems)
            if let user = Self.required(user, section, "with an access token", &problems), let token {
                let file = section.file(of: \.accessToken)
                credential = .accessToken(user: user, file.map { .file(path: $0) } ?? .fixed(token.revealed))
            }
        case .sessionToken, .signedToken:
            if kind == .signedToken, !section.has(\.session) {
                problems.append(section.problem(\.session, "is required with kind: signed_token"))
            }
            credential = Self.source(section, &problems).map { .sessionToken(user: user, $0) }
        case .key:
            let key = Self.key(section, &problems)
            if let user = Self.required(user, section, "with a key", &problems), let key {
                credential = .key(user: user, key)
            }
        case .anonymous:
            credential = section.value(\.anonymous, &problems).map { .anonymous(name: $0) }
            if credential == nil, problems.count == before {
                problems.append(section.problem(\.anonymous, "is required with kind: anonymous: a name"))
            }
        case .kept:
            if !keeps { problems.append(section.problem(\.sessionFile, "is required with kind: kept")) }
            credential = .kept
        case .sip: return nil
        }
        guard let credential else { return nil }
        self = credential
    }

    private static func kind(
        _ section: Section, keeps: Bool, _ problems: inout [ConfigProblem]
    ) -> Kind? {
        if section.has(\.kind) { return section.value(\.kind, &problems) }
        let given: [Kind] = [.mediaToken, .password, .accessToken, .sessionToken, .key, .anonymous].filter { kind in
            kind.key(in: section) != nil || kind.isInTheClear(in: section)
        }
        switch given.count {
        case 1: return given[0]
        case 0 where keeps: return .kept
        case 0:
            problems.append(
                section.problem(
                    \.mediaToken,
                    "is required: give one of media_token_file, media_token_env, password_file "
                        + "(with user), password_env (with user), access_token_file (with user), token_file, token_env, "
                        + "token_command, key_file (with user and enrollment), anonymous, or session_file with a login kept from earlier"
                ))
        default:
            let names = given.map(\.rawValue).joined(separator: ", ")
            problems.append(Self.problem(with: given[1], section, "give only one of \(names)"))
        }
        return nil
    }

    private static func problem(with kind: Kind, _ section: Section, _ message: String) -> ConfigProblem {
        guard kind.key(in: section) != nil else { return section.problem(\.kind, message) }
        switch kind {
        case .mediaToken: return section.problem(\.mediaToken, message)
        case .password: return section.problem(\.password, message)
        case .accessToken: return section.problem(\.accessToken, message)
        case .sessionToken, .signedToken:
            return section.has(\.token)
                ? section.problem(\.token, message) : section.problem(\.tokenCommand, message)
        case .key: return section.problem(\.keyFile, message)
        case .anonymous: return section.problem(\.anonymous, message)
        case .kept: return section.problem(\.sessionFile, message)
        case .sip: return section.problem(\.sip, message)
        }
    }

    private static func source(_ section: Section, _ problems: inout [ConfigProblem]) -> TokenSource? {
        if section.has(\.tokenCommand) {
            section.rejectIdle(\.token, "is given together with token_command; keep one of them", &problems)
            return section.value(\.tokenCommand, &problems).map { .command($0) }
        }
        guard let token = section.requiredSecret(\.token, &problems) else { return nil }
        // The file is read again for each new token.
        if let path = section.file(of: \.token) { return .file(path: path) }
        return .fixed(token.revealed)
    }

    private static func key(_ section: Section, _ problems: inout [ConfigProblem]) -> DeviceLoginKey? {
        let enrollment = section.value(\.enrollment, &problems)
        if enrollment == nil {
            problems.append(
                section.problem(
                    \.enrollment, "is required with a key; `handset enroll` writes both into a configuration"))
        }
        guard section.has(\.keyFile) else {
            problems.append(section.problem(\.keyFile, "is required with kind: key"))
            return nil
        }
        guard let path = section.value(\.keyFile, &problems), let enrollment else { return nil }
        section.warnOfReaders(\.keyFile, path, &problems)
        // Where files are not looked at, a key is needed all the same: any will do.
        guard section.fileChecks != .none else { return DeviceLoginKey() }
        let bytes = (try? PrivateFile.read(path, maximumBytes: 4_096)) ?? nil
        guard let bytes else { return nil }  // Reported as unreadable.
        let key = DeviceLoginKey(pem: String(decoding: bytes, as: UTF8.self), enrollment: enrollment)
        if key == nil {
            let message = "\"\(path)\" holds no private key of Ed25519 in PEM form, as `handset enroll` makes it"
            problems.append(section.problem(\.keyFile, message))
        }
        return key
    }

    private static func required(
        _ user: String?, _ section: Section, _ when: String, _ problems: inout [ConfigProblem]
    ) -> String? {
        if user == nil { problems.append(section.problem(\.user, "is required \(when)")) }
        return user
    }
}
