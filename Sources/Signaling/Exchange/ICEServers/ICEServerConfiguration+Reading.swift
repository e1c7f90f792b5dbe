import ConfigReader
import SignalWire

/// Reading one of `ice_servers`.
extension ICEServerConfiguration {
    /// Shorter ones can be guessed from a name and a password that somebody was given.
    private static let minimumSecretBytes = 16

    init?(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        section.require(["urls"], &problems)
        let urls = section.list("urls", &problems)
        let username = section.string("username", &problems)
        let credential = section.secret("credential", &problems)
        let secret = section.secret("secret", &problems)
        let lifetime = section.seconds("credential_seconds", in: 60...86_400, &problems)
        section.rejectUnknownKeys(
            known: ["urls", "username", "credential", "secret", "credential_seconds"]
                + ConfigSection.secretKeys("credential") + ConfigSection.secretKeys("secret"), &problems)
        Self.check(section, &problems)
        guard let urls else { return nil }
        var access = Access.open
        if let secret {
            guard secret.revealed.utf8.count >= Self.minimumSecretBytes else {
                let message = "must have at least \(Self.minimumSecretBytes) bytes; `openssl rand -hex 32` makes some"
                problems.append(section.problem(section.has("secret_file") ? "secret_file" : "secret_env", message))
                return nil
            }
            access = .own(
                RelaySecret(Redacted(secret.revealed), lifetime: lifetime ?? RelaySecret.defaultLifetime))
        } else if let username, let credential {
            access = .fixed(username: username, credential: Redacted(credential.revealed))
        }
        self.init(urls: urls, access: access)
    }

    private static func check(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        func given(_ name: String) -> String? { ConfigSection.secretKeys(name).first(where: section.has) }
        let own = given("secret")
        if let own, let fixed = section.has("username") ? "username" : given("credential") {
            problems.append(
                section.problem(fixed, "is given together with \(own), which makes a name and password for each client")
            )
        }
        if own == nil, section.has("credential_seconds") {
            problems.append(section.problem("credential_seconds", "is for a secret; give secret_file or secret_env"))
        }
        if own == nil, section.has("username") != (given("credential") != nil) {
            let key = section.has("username") ? "username" : given("credential") ?? "credential_file"
            problems.append(section.problem(key, "is of no use alone; give username and credential_file together"))
        }
    }
}
