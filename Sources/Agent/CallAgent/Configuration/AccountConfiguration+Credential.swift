internal import ConfigReader
internal import SignalingClient

// Which of the ways in an account takes: by `kind`, or by the keys that are given.
extension AccountConfiguration.Credential {
    private enum Kind: String, CaseIterable {
        case mediaToken = "media_token"
        case password
        case accessToken = "access_token"
        case sessionToken = "session_token"
        case signedToken = "signed_token"
        case anonymous
        case kept

        /// The keys that say what this kind needs.
        var keys: [String] {
            switch self {
            case .mediaToken: ConfigSection.secretKeys("media_token")
            case .password: ConfigSection.secretKeys("password")
            case .accessToken: ConfigSection.secretKeys("access_token")
            case .sessionToken, .signedToken: ConfigSection.secretKeys("token") + ["token_command"]
            case .anonymous: ["anonymous"]
            case .kept: ["session_file"]
            }
        }
    }

    /// Reads how to log in; nil if a problem was noted.
    init?(_ section: ConfigSection, keeps: Bool, _ problems: inout [ConfigProblem]) {
        guard let kind = Self.kind(section, keeps: keeps, &problems) else { return nil }
        let user = section.string("user", &problems)
        let before = problems.count
        var credential: Self?
        switch kind {
        case .mediaToken: credential = section.secret("media_token", required: true, &problems).map { .mediaToken($0) }
        case .password:
            let password = section.secret("password", required: true, &problems)
            if let user = Self.required(user, section, "with a password", &problems), let password {
                credential = .password(user: user, password)
            }
        case .accessToken:
            // Read here, to be told at once what is wrong with it; the file is read again at each login.
            let token = section.secret("access_token", required: true, &problems)
            if let user = Self.required(user, section, "with an access token", &problems), let token {
                let file = section.path("access_token_file", &problems)
                credential = .accessToken(user: user, file.map { .file(path: $0) } ?? .fixed(token.revealed))
            }
        case .sessionToken, .signedToken:
            if kind == .signedToken, !section.has("session") {
                problems.append(section.problem("session", "is required with kind: signed_token"))
            }
            credential = Self.source(section, &problems).map { .sessionToken(user: user, $0) }
        case .anonymous:
            credential = section.string("anonymous", &problems).map { .anonymous(name: $0) }
            if credential == nil, problems.count == before {
                problems.append(section.problem("anonymous", "is required with kind: anonymous: a name"))
            }
        case .kept:
            if !keeps { problems.append(section.problem("session_file", "is required with kind: kept")) }
            credential = .kept
        }
        guard let credential else { return nil }
        self = credential
    }

    private static func kind(
        _ section: ConfigSection, keeps: Bool, _ problems: inout [ConfigProblem]
    ) -> Kind? {
        if section.has("kind") { return section.enumeration("kind", of: Kind.self, &problems) }
        // A secret written into the file is a problem that the kind's own reading tells.
        let given: [Kind] = [.mediaToken, .password, .accessToken, .sessionToken, .anonymous].filter { kind in
            kind.keys.contains { section.has($0) }
                || section.has(kind == .sessionToken ? "token" : kind.rawValue) && kind != .anonymous
        }
        switch given.count {
        case 1: return given[0]
        case 0 where keeps: return .kept
        case 0:
            problems.append(
                section.problem(
                    "media_token_file",
                    "is required: give one of media_token_file, media_token_env, password_file "
                        + "(with user), password_env (with user), access_token_file (with user), token_file, token_env, "
                        + "token_command, anonymous, or session_file with a login kept from earlier"))
        default:
            let names = given.map(\.rawValue).joined(separator: ", ")
            problems.append(
                section.problem(given[1].keys.first { section.has($0) } ?? "kind", "give only one of \(names)"))
        }
        return nil
    }

    private static func source(_ section: ConfigSection, _ problems: inout [ConfigProblem]) -> TokenSource? {
        if section.has("token_command") {
            for key in ConfigSection.secretKeys("token") where section.has(key) {
                problems.append(section.problem(key, "is given together with token_command; keep one of them"))
            }
            return section.command("token_command", &problems).map { .command($0) }
        }
        guard let token = section.secret("token", required: true, &problems) else { return nil }
        // The file is read again for each new token.
        if let path = section.has("token_file") ? section.path("token_file", &problems) : nil {
            return .file(path: path)
        }
        return .fixed(token.revealed)
    }

    private static func required(
        _ user: String?, _ section: ConfigSection, _ when: String, _ problems: inout [ConfigProblem]
    ) -> String? {
        if user == nil { problems.append(section.problem("user", "is required \(when)")) }
        return user
    }
}
