public import SignalWire

/// One user of the configuration.
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
    /// For a login by key: the keys of the devices that have joined.
    public var keys: [DeviceKey]
    /// Codes by which devices may join.
    public var enrollments: [EnrollmentRecord]
    /// The mail address, for the answer to a login.
    public var email: String?
    /// Only logins and signed tokens from this time on are good: seconds since 1970.
    public var loginsSince: Int64?

    /// Makes an account.
    public init(
        id: UserID, publicIDs: [UserID] = [], routingID: String? = nil, password: Credential? = nil,
        mediaTokens: [SecretDigest] = [], streamTokens: [SecretDigest] = [], accessTokens: [SecretDigest] = [],
        keys: [DeviceKey] = [], enrollments: [EnrollmentRecord] = [], email: String? = nil, loginsSince: Int64? = nil
    ) {
        self.id = id
        self.publicIDs = publicIDs
        self.routingID = routingID ?? id.text
        self.password = password
        self.mediaTokens = mediaTokens
        self.streamTokens = streamTokens
        self.accessTokens = accessTokens
        self.keys = keys
        self.enrollments = enrollments
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
