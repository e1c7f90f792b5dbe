public import SignalWire
internal import Cryptography
internal import Core
import ConfigReader
import ICE

/// A STUN or TURN server that clients receive.
public struct ICEServerConfiguration: Hashable, Sendable {
    /// How clients get in.
    public enum Access: Hashable, Sendable {
        /// Everybody does.
        case open
        /// With one name and password for all, for good: given to users, and never to guests.
        case fixed(username: String, credential: Redacted<String>)
        /// With a name and password of each client's own, for a while.
        case own(RelaySecret)
    }

    /// Its URLs, such as `turns:turn.example.org:5349`.
    public var urls: [String]
    /// How clients get in.
    public var access: Access

    /// Describes a server.
    public init(urls: [String], access: Access = .open) {
        self.urls = urls
        self.access = access
    }
}

/// The secret that the exchange shares with a TURN server, so that the server can verify credentials without asking the
/// exchange: the scheme of draft-uberti-behave-turn-rest, which coturn calls `use-auth-secret`.
public struct RelaySecret: Hashable, Sendable {
    let secret: Redacted<String>
    /// How long a name and password are good.
    let lifetime: Duration

    /// Long enough for nearly all calls, because not every server lets an allocation live on after it.
    public static let defaultLifetime = Duration.seconds(14_400)

    /// Keeps the secret.
    public init(_ secret: Redacted<String>, lifetime: Duration = defaultLifetime) {
        self.secret = secret
        self.lifetime = lifetime
    }

    /// A name and a password that the server accepts until `lifetime` has passed.
    ///
    /// - Parameters:
    ///   - user: The user that the server's log names; no secret.
    ///   - now: The time of day, which the server's clock must agree with.
    func credentials(for user: String, at now: WallClock) -> (username: String, password: Redacted<String>) {
        let expiry = now.unixMilliseconds / 1_000 + lifetime.components.seconds
        let username = "\(expiry):\(user)"
        // The scheme has no other hash, and HMAC asks no more of SHA-1 than it still gives (RFC 6151).
        let code = Digest.hmacSHA1(Array(secret.secret.utf8), Array(username.utf8))
        return (username, Redacted(Base64.text(code)))
    }
}

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

/// The servers that one client receives.
struct ICEServerOffer: Hashable, Sendable {
    var servers: [SignalWire.ICEServer] = []
    /// How long it is good; `nil` for ever.
    var lifetime: Duration?

    /// - Parameters:
    ///   - user: The client's user; `nil` for a guest, who has no account.
    ///   - guest: What a guest is called by TURN servers.
    init(
        _ configurations: [ICEServerConfiguration], user: UserID?, guest: @autoclosure () -> GuestName,
        at now: WallClock
    ) {
        for configuration in configurations {
            switch (configuration.access, user) {
            case (.open, _):
                servers.append(SignalWire.ICEServer(urls: configuration.urls))
            case (.fixed(let username, let credential), .some):
                servers.append(
                    SignalWire.ICEServer(urls: configuration.urls, username: username, credential: credential))
            case (.fixed, nil):
                // STUN needs no credential.
                let open = configuration.urls.filter { $0.lowercased().hasPrefix("stun") }
                if !open.isEmpty { servers.append(SignalWire.ICEServer(urls: open)) }
            case (.own(let secret), _):
                let (username, password) = secret.credentials(for: user?.text ?? guest().text, at: now)
                servers.append(SignalWire.ICEServer(urls: configuration.urls, username: username, credential: password))
                lifetime = min(lifetime ?? secret.lifetime, secret.lifetime)
            }
        }
    }
}

/// What a guest is called by TURN servers: the name that it gave itself is anything at all.
struct GuestName: Hashable, Sendable {
    let text: String

    /// Another one each time.
    static func guest() -> GuestName {
        GuestName(text: "guest-" + String(UInt32.random(in: 0...(.max)), radix: 16))
    }
}
