/// Body of `POST /v1.1/login` (AUTH-1): a media token, or our addition, a user id with a password.
public struct LoginRequest: Codable, Hashable, Sendable {
    // In the order of their names in JSON, so that writing it sorts nothing and leaves no second copy of a secret in memory.

    /// With an access-token login: the user's long-lived access token.
    public var accessToken: Redacted<String>?
    /// `offline`: the login outlives the connection.
    public var accessType: String?
    /// With a key: what the exchange has asked to sign.
    public var challenge: String?
    /// With a media-token login: the token.
    public var mediaToken: Redacted<String>?
    /// With a password login: the password.
    public var password: Redacted<String>?
    /// With a key: the public key, base64url.
    public var publicKey: String?
    /// `mappings`: the answer names the user's ids.
    public var scope: String?
    /// With a key: the signature, base64url.
    public var signature: Redacted<String>?
    /// The kind of login: ``mediaTokenType``, ``passwordType``, ``accessTokenType`` or ``keyType``.
    public var type: String
    /// With a password or access-token login: whose it is.
    public var userID: UserID?

    /// The type of a media-token login.
    public static let mediaTokenType = "Cima"
    /// The type of a password login.
    public static let passwordType = "Password"
    /// The type of a login with a long-lived access token.
    public static let accessTokenType = "AccessToken"

    /// The type of a login by key (AUTH-13).
    public static let keyType = "Key"

    /// A media-token login, exactly as in AUTH-1.
    public init(mediaToken: Redacted<String>) {
        type = Self.mediaTokenType
        self.mediaToken = mediaToken
        accessType = "offline"
        scope = "mappings"
    }

    /// A password login.
    public init(userID: UserID, password: Redacted<String>) {
        type = Self.passwordType
        self.userID = userID
        self.password = password
        accessType = "offline"
        scope = "mappings"
    }

    /// A login with a long-lived access token (AUTH-4).
    public init(userID: UserID, accessToken: Redacted<String>) {
        type = Self.accessTokenType
        self.userID = userID
        self.accessToken = accessToken
        accessType = "offline"
        scope = "mappings"
    }

    /// A login by key (AUTH-13).
    public init(userID: UserID, publicKey: String, challenge: String, signature: Redacted<String>) {
        type = Self.keyType
        self.userID = userID
        self.publicKey = publicKey
        self.challenge = challenge
        self.signature = signature
        accessType = "offline"
        scope = "mappings"
    }

    private enum CodingKeys: String, CodingKey {
        case type, password, scope, challenge, signature
        case publicKey = "public_key"
        case accessToken = "access_token"
        case mediaToken = "media_token"
        case userID = "user_id"
        case accessType = "access_type"
    }
}

/// Answer to a login. Of another service's answer only the token must be there.
public struct LoginResponse: Codable, Hashable, Sendable {
    /// Data about the user's person.
    public struct UserData: Codable, Hashable, Sendable {
        /// The customer's id.
        public var customerGUID: String?
        /// The mail address.
        public var email: String?

        /// Makes user data.
        public init(customerGUID: String? = nil, email: String? = nil) {
            self.customerGUID = customerGUID
            self.email = email
        }

        private enum CodingKeys: String, CodingKey { case customerGUID = "cust_guid", email }
    }

    /// The access token.
    public var token: Redacted<String>
    /// The token by which a new access token is requested.
    public var refreshToken: Redacted<String>?
    /// Seconds until the access token ends; on the wire a number, or a number in a string.
    public var expiresIn: Double?
    /// The user's id.
    public var id: String?
    /// How many public ids the user has.
    public var idMappingCount: Double?
    /// Routing id of calls to the user.
    public var routingID: String?
    /// Data about the user's person.
    public var userData: UserData?

    /// Makes an answer.
    public init(
        token: Redacted<String>, refreshToken: Redacted<String>? = nil, expiresIn: Double? = nil, id: String? = nil,
        idMappingCount: Double? = nil, routingID: String? = nil, userData: UserData? = nil
    ) {
        self.token = token
        self.refreshToken = refreshToken
        self.expiresIn = expiresIn
        self.id = id
        self.idMappingCount = idMappingCount
        self.routingID = routingID
        self.userData = userData
    }

    private enum CodingKeys: String, CodingKey {
        case token, id
        case refreshToken = "refresh_token"
        case expiresIn = "expires_in"
        case idMappingCount = "idmapping_count"
        case routingID = "routing_id"
        case userData = "user_data"
    }

    /// Reads an answer; numbers may be strings (AUTH-1).
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        token = try container.decode(Redacted<String>.self, forKey: .token)
        refreshToken = try container.decodeIfPresent(Redacted<String>.self, forKey: .refreshToken)
        expiresIn = try container.decodeIfPresent(LenientNumber.self, forKey: .expiresIn)?.value
        id = try container.decodeIfPresent(String.self, forKey: .id)
        idMappingCount = try container.decodeIfPresent(LenientNumber.self, forKey: .idMappingCount)?.value
        routingID = try container.decodeIfPresent(String.self, forKey: .routingID)
        userData = try container.decodeIfPresent(UserData.self, forKey: .userData)
    }
}

/// Body of `POST /v1.1/token`: a new access token for a refresh token (AUTH-4).
public struct TokenRequest: Codable, Hashable, Sendable {
    /// The refresh token of the login, or of the previous request.
    public var refreshToken: Redacted<String>

    /// Makes the body.
    public init(refreshToken: Redacted<String>) { self.refreshToken = refreshToken }

    private enum CodingKeys: String, CodingKey { case refreshToken = "refresh_token" }
}

/// A number, or a number in a string.
private struct LenientNumber: Decodable {
    var value: Double

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Double.self) {
            value = number
        } else if let number = Double(try container.decode(String.self)), number.isFinite {
            value = number
        } else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a number")
        }
    }
}

/// Body of `POST /v1.1/login/anonymous` (AUTH-3).
public struct AnonymousLoginRequest: Codable, Hashable, Sendable {
    /// The name to be known by in rooms.
    public var userID: UserID

    /// Makes the body.
    public init(userID: UserID) { self.userID = userID }

    private enum CodingKeys: String, CodingKey { case userID = "user_id" }
}

/// Answer to an anonymous login.
public struct AnonymousLoginResponse: Codable, Hashable, Sendable {
    /// The access token.
    public var token: Redacted<String>

    /// Makes an answer.
    public init(token: Redacted<String>) { self.token = token }
}
