public import ConfigReader
public import SignalingClient

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
    /// The application's key and secret (AUTH-1); the key is what other services call an application id or an API key.
    public var appKey = "demo"
    /// See ``appKey``.
    public var appSecret = Secret("demo")
    /// How to log in.
    public var credential: Credential
    /// A PEM file of certificates to trust besides the system's.
    public var trustRoots: String?
    /// Speak without TLS to a server that is not on this machine.
    public var allowsPlainText = false

    /// Where the login is kept, so that a device that starts again needs no secret (AUTH-10).
    public var sessionFile: String?
    /// The session that a signed token is good for, joined after each login (AUTH-5).
    public var session: String?

    /// How to log in.
    public enum Credential: Sendable {
        /// With a media token (AUTH-1).
        case mediaToken(Secret)
        /// With a name and a password.
        case password(user: String, Secret)
        /// With a user's long-lived access token (AUTH-4).
        case accessToken(user: String, TokenSource)
        /// With a token that opens sessions as it is and ends: a user's, or one signed for a session (AUTH-4, AUTH-5).
        case sessionToken(user: String?, TokenSource)
        /// As a guest, who may join rooms and nothing else (AUTH-3).
        case anonymous(name: String)
        /// With nothing but what ``sessionFile`` has from an earlier login.
        case kept
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
        trustRoots = section.certificates("trust_roots", &problems)
        allowsPlainText = section.bool("allow_plain_text", &problems) ?? false
        sessionFile = section.outputFile("session_file", &problems)
        session = section.string("session", &problems)
        if let credential = Credential(section, keeps: sessionFile != nil, &problems) { self.credential = credential }
        section.rejectUnknownKeys(
            known: [
                "server", "auth_url", "identity_url", "events_url", "app_key", "trust_roots", "allow_plain_text",
                "kind", "user", "anonymous", "session", "session_file", "token_command",
            ] + ["app_secret", "media_token", "password", "access_token", "token"].flatMap(ConfigSection.secretKeys),
            &problems)
    }
}
