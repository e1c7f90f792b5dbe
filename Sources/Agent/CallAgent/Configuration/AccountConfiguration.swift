public import ConfigReader

/// Where and as whom a device logs in.
public struct AccountConfiguration: Sendable {
    /// Where `handset serve` listens unless told otherwise.
    public static let defaultServer = "http://127.0.0.1:8555"

    /// Base URL of login (contract AUTH-1, 3).
    public var authURL: String
    /// Base URL of identities (AUTH-2).
    public var identityURL: String
    /// Base URL of the connection's resources (CONN-1).
    public var eventsURL: String
    /// The application's key and secret (AUTH-1).
    public var appKey = "demo"
    /// See ``appKey``.
    public var appSecret = Secret("demo")
    /// How to log in.
    public var credential: Credential
    /// A PEM file of certificates to trust besides the system's.
    public var trustRoots: String?
    /// Speak without TLS to a server that is not on this machine.
    public var allowsPlainText = false

    /// How to log in.
    public enum Credential: Sendable {
        /// With a media token (AUTH-1).
        case mediaToken(Secret)
        /// With a name and a password.
        case password(user: String, Secret)
        /// As a guest, who may join rooms and nothing else (AUTH-3).
        case anonymous(name: String)
    }

    /// Makes an account whose three base URLs are one server's.
    public init(server: String, credential: Credential = .anonymous(name: "guest")) {
        authURL = server
        identityURL = server
        eventsURL = server
        self.credential = credential
    }

    init(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        let schemes = ["http", "https"]
        self.init(server: section.url("server", schemes: schemes, &problems) ?? Self.defaultServer)
        authURL = section.url("auth_url", schemes: schemes, &problems) ?? authURL
        identityURL = section.url("identity_url", schemes: schemes, &problems) ?? identityURL
        eventsURL = section.url("events_url", schemes: schemes, &problems) ?? eventsURL
        appKey = section.string("app_key", &problems) ?? appKey
        appSecret = section.secret("app_secret", &problems) ?? appSecret
        trustRoots = section.path("trust_roots", readable: true, &problems)
        allowsPlainText = section.bool("allow_plain_text", &problems) ?? false
        readCredential(section, &problems)
        section.rejectUnknownKeys(
            known: [
                "server", "auth_url", "identity_url", "events_url", "app_key", "trust_roots", "allow_plain_text",
                "user", "anonymous",
            ] + ["app_secret", "media_token", "password"].flatMap(ConfigSection.secretKeys), &problems)
    }

    private mutating func readCredential(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        let token = section.secret("media_token", &problems)
        let password = section.secret("password", &problems)
        let user = section.string("user", &problems)
        let guest = section.string("anonymous", &problems)
        switch (token, password, guest) {
        case (let token?, nil, nil): credential = .mediaToken(token)
        case (nil, let password?, nil):
            guard let user else {
                problems.append(section.problem("user", "is required with a password"))
                return
            }
            credential = .password(user: user, password)
        case (nil, nil, let guest?): credential = .anonymous(name: guest)
        case (nil, nil, nil):
            let given = ["media_token", "password"].flatMap(ConfigSection.secretKeys).contains { section.has($0) }
            guard !given else { return }  // Told already why it cannot be read.
            problems.append(
                section.problem(
                    "media_token_file",
                    "is required: give one of media_token_file, media_token_env, password_file "
                        + "(with user), password_env (with user), anonymous"))
        default:
            problems.append(
                section.problem("media_token_file", "give only one of a media token, a password and anonymous"))
        }
    }
}
