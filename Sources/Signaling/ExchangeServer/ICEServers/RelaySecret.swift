internal import Cryptography
public import SignalWire
internal import Core

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
