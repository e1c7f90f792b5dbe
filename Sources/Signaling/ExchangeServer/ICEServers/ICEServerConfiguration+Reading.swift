import ConfigReader
import ICE
import SignalWire

/// Reading one of `ice_servers`.
extension ICEServerConfiguration {
    /// A user could guess a shorter secret from a name and a password that it received.
    private static let minimumSecretBytes = 16

    /// The keys of one of `ice_servers`.
    struct Keys: ConfigKeys {
        let urls = ConfigKey.list("urls", of: "URLs", "such as `turns:turn.example.org:5349`") {
            url throws(ConfigValueFault) in
            if ICEServerURL(url) != nil { return url }
            throw ConfigValueFault(
                "\"\(url)\" must be stun:HOST:PORT, stuns:HOST:PORT, turn:HOST:PORT or turns:HOST:PORT, the last two "
                    + "with ?transport=udp or ?transport=tcp if need be; browsers refuse all else")
        }.required
        let secret = ConfigKey.secret(
            "secret", suggestsName: true,
            "coturn's static-auth-secret: each client gets a name and password of its own")
        let credentialLifetime = ConfigKey.seconds(
            "credential_seconds", in: 60...86_400, "with `secret`: how long these are good"
        ).defaulting(to: RelaySecret.defaultLifetime)
        let username = ConfigKey.string(
            "username", "one permanent name and password for all users; guests do not receive them")
        let credential = ConfigKey.secret("credential", suggestsName: true, "the password")
    }

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let before = problems.count
        let urls = section.value(\.urls, &problems)
        if urls?.isEmpty == true, problems.count == before {
            problems.append(section.problem(\.urls, "needs at least one URL; browsers refuse a server without any"))
        }
        let username = section.value(\.username, &problems)
        let credential = section.value(\.credential, &problems)
        let secret = section.value(\.secret, &problems)
        let lifetime = section.value(\.credentialLifetime, &problems)
        Self.check(section, urls ?? [], &problems)
        guard let urls else { return nil }
        var access = Access.open
        if let secret {
            guard secret.revealed.utf8.count >= Self.minimumSecretBytes else {
                let message = "must have at least \(Self.minimumSecretBytes) bytes; `openssl rand -hex 32` makes some"
                problems.append(section.problem(\.secret, message))
                return nil
            }
            access = .own(RelaySecret(Redacted(secret.revealed), lifetime: lifetime))
        } else if let username, let credential {
            access = .fixed(username: username, credential: Redacted(credential.revealed))
        }
        self.init(urls: urls, access: access)
    }

    private static func check(
        _ section: KeyedSection<Keys>, _ urls: [String], _ problems: inout [ConfigProblem]
    ) {
        /// At the name, or else at the password.
        func problem(_ message: String) -> ConfigProblem {
            section.has(\.username) ? section.problem(\.username, message) : section.problem(\.credential, message)
        }
        guard let own = section.name(\.secret) else {
            section.rejectIdle(\.credentialLifetime, "is for a secret; give secret_file or secret_env", &problems)
            if section.has(\.username) != section.has(\.credential) {
                problems.append(problem("has no effect alone; give username and credential_file together"))
            } else if !section.has(\.username), !section.isInTheClear(\.secret), !section.isInTheClear(\.credential),
                urls.contains(where: { ICEServerURL($0)?.scheme.isRelay == true })
            {
                let message =
                    "names a TURN server, which requires secret_file, or username and "
                    + "credential_file"
                problems.append(section.problem(\.urls, message))
            }
            return
        }
        if section.has(\.username) || section.has(\.credential) {
            problems.append(problem("is given together with \(own), which makes a name and password for each client"))
        }
    }
}
