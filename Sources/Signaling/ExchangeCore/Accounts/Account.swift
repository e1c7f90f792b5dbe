public import SignalWire

/// One user, as the configuration has it.
public struct Account: Hashable, Sendable {
    /// The user's id.
    public var id: UserID
    /// The ids by which the user can be called, besides its own.
    public var publicIDs: [UserID]
    /// Where calls to the user go; the user's id unless given.
    public var routingID: String
    /// For a login with a password, if the user may have one.
    public var password: Credential?
    /// For a login with a media token: the digest of each that is good.
    public var mediaTokens: [SecretDigest]
    /// For streams to this user, and nothing else: the digest of each token that is good.
    public var streamTokens: [SecretDigest]
    /// For a login with a long-lived access token: the digest of each that is good.
    public var accessTokens: [SecretDigest]
    /// The mail address, for the answer to a login.
    public var email: String?
    /// Only logins and signed tokens from this time on are good: seconds since 1970.
    public var loginsSince: Int64?

    /// Makes an account.
    public init(
        id: UserID, publicIDs: [UserID] = [], routingID: String? = nil, password: Credential? = nil,
        mediaTokens: [SecretDigest] = [], streamTokens: [SecretDigest] = [], accessTokens: [SecretDigest] = [],
        email: String? = nil, loginsSince: Int64? = nil
    ) {
        self.id = id
        self.publicIDs = publicIDs
        self.routingID = routingID ?? id.text
        self.password = password
        self.mediaTokens = mediaTokens
        self.streamTokens = streamTokens
        self.accessTokens = accessTokens
        self.email = email
        self.loginsSince = loginsSince
    }
}

/// One application that may log users in: the `appKey:appSecret` of AUTH-1.
public struct RegisteredApp: Hashable, Sendable {
    /// The application's key, which is no secret.
    public var key: ApplicationKey
    /// The digest of its secret.
    public var secret: SecretDigest

    /// Makes an entry.
    public init(key: ApplicationKey, secret: SecretDigest) {
        self.key = key
        self.secret = secret
    }
}

/// All users, found by any of their ids. Of two accounts with one id the first counts.
package struct Accounts: Sendable {
    /// In the order of their ids.
    let all: [Account]
    private var byID: [UserID: Account] = [:]
    private var ownerByPublicID: [UserID: UserID] = [:]
    private var ownerByMediaToken: [SecretDigest: UserID] = [:]
    private var ownerByStreamToken: [SecretDigest: UserID] = [:]

    init(_ accounts: [Account]) {
        for account in accounts where byID[account.id] == nil {
            byID[account.id] = account
            for publicID in account.publicIDs where ownerByPublicID[publicID] == nil {
                ownerByPublicID[publicID] = account.id
            }
            for token in account.mediaTokens { ownerByMediaToken[token] = account.id }
            for token in account.streamTokens { ownerByStreamToken[token] = account.id }
        }
        all = byID.values.sorted { $0.id < $1.id }
    }

    /// The account whose own id this is.
    package func account(id: UserID) -> Account? { byID[id] }

    /// The account that can be called by `id`: its own, or a public one.
    package func account(called id: UserID) -> Account? { byID[id] ?? ownerByPublicID[id].flatMap { byID[$0] } }

    /// The account that a media token logs in.
    package func account(mediaToken: SecretDigest) -> Account? { ownerByMediaToken[mediaToken].flatMap { byID[$0] } }

    /// The account that a stream token streams to.
    package func account(streamToken: SecretDigest) -> Account? { ownerByStreamToken[streamToken].flatMap { byID[$0] } }
}
