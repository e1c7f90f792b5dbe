import Core
package import SignalWire

/// A refresh token: its login's family, its generation, and a secret.
///
/// All refresh tokens of a login begin with the same 144 random bits, its family, which only a holder of one of these
/// tokens knows. So an old token is recognised by its family and generation for as long as the login lasts, though
/// nothing of the token itself is kept. The three parts are 18, 6 and 33 bytes in base64url: each ends with a whole
/// character, so that there is one way to write a token. With several shards the one that has the login is named before them, as `2f.`.
package struct RefreshToken: Hashable, Sendable {
    /// What an old token is known by.
    package struct Mark: Hashable, Sendable {
        /// The digest of the family.
        package var family: SecretDigest
        /// Counts the exchanges since the login.
        var generation: UInt64
    }

    /// The generation that a login begins with. Tokens that are kept in a database from before there were families have
    /// earlier ones.
    static let firstGeneration: UInt64 = 17

    private static let familyBytes = 18
    private static let generationBytes = 6
    private static let secretBytes = 33
    private static let familyLength = familyBytes / 3 * 4
    private static let length = (familyBytes + generationBytes + secretBytes) / 3 * 4

    package let text: Redacted<String>
    let generation: UInt64
    private let family: Redacted<String>

    package var mark: Mark { Mark(family: SecretDigest(of: family.secret), generation: generation) }
    package var digest: SecretDigest { SecretDigest(of: text.secret) }

    /// A new one.
    ///
    /// - Parameters:
    ///   - earlier: One of the same login, with or without a shard; `nil` begins a family.
    ///   - shard: Which has the login; nil in an exchange that has one core for all users.
    package init(after earlier: RefreshToken? = nil, generation: UInt64 = firstGeneration, shard: Shard? = nil) {
        family = earlier?.family ?? Redacted(FreshSecret.text(bytes: Self.familyBytes))
        let number = (0..<Self.generationBytes).reversed().map { UInt8(truncatingIfNeeded: generation >> (8 * $0)) }
        text = Redacted(
            (shard?.prefix ?? "") + family.secret + Base64URL.text(number) + FreshSecret.text(bytes: Self.secretBytes))
        self.generation = generation
    }

    /// One that a client shows; `nil` if it is none, or from before there were families.
    package init?(_ shown: Redacted<String>) {
        let parts = shown.secret.utf8.dropFirst(Shard(namedIn: shown)?.prefix.utf8.count ?? 0)
        guard parts.count == Self.length, let bytes = Base64URL.bytes(of: parts) else { return nil }
        text = shown
        family = Redacted(String(Substring(parts.prefix(Self.familyLength))))
        generation = bytes.dropFirst(Self.familyBytes).prefix(Self.generationBytes).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
