public import Core

/// What is kept of a login beside its tokens.
public struct StoredLogin: Hashable, Sendable {
    /// What it is called in its tokens and sessions.
    public var id: String
    /// The API key that signed its tokens; `nil` if the exchange made them, empty if that is not known any more.
    public var issuer: String?
    /// The digest of what all its refresh tokens begin with.
    public var family: String?
    /// The generation of its newest pair of tokens.
    public var newest: UInt64
    /// The newest generation of which its bearer has shown a token.
    public var reached: UInt64
    /// When it was last in use, an hour earlier at most; `nil`: not known, from an earlier version.
    public var used: Instant?

    /// Makes an entry.
    public init(
        id: String, issuer: String? = nil, family: String? = nil, newest: UInt64 = 0, reached: UInt64 = 0,
        used: Instant? = nil
    ) {
        self.id = id
        self.issuer = issuer
        self.family = family
        self.newest = newest
        self.reached = reached
        self.used = used
    }
}
