/// Answer to `GET /v1/allidentities` (AUTH-2).
public struct Identities: Codable, Hashable, Sendable {
    /// The ids by which the user can be called.
    public var publicIDs: [UserID]
    /// Routing id of calls to the user.
    public var routingID: String

    /// Makes an answer.
    public init(publicIDs: [UserID], routingID: String) {
        self.publicIDs = publicIDs
        self.routingID = routingID
    }

    private enum CodingKeys: String, CodingKey { case publicIDs = "public_ids", routingID = "routing_id" }
}

/// A STUN or TURN server, in the form that WebRTC's `RTCIceServer` has.
public struct ICEServer: Codable, Hashable, Sendable {
    /// Its URLs, such as `stun:stun.example.org:3478`.
    public var urls: [String]
    /// TURN user name.
    public var username: String?
    /// TURN password.
    public var credential: Redacted<String>?

    /// Makes an entry.
    public init(urls: [String], username: String? = nil, credential: Redacted<String>? = nil) {
        self.urls = urls
        self.username = username
        self.credential = credential
    }
}

/// Answer to `GET /v1/connection`: what the connection needs (CONN-1).
public struct ConnectionResources: Codable, Hashable, Sendable {
    /// Address of the WebSocket.
    public var webSocketURL: String
    /// STUN and TURN servers.
    public var iceServers: [ICEServer]
    /// Lifetime of the names and passwords of `iceServers`; absent if unlimited. Ask again before that.
    public var iceServersSeconds: Int?
    /// The longest time without a message from either side, in seconds.
    public var keepaliveSeconds: Int
    /// How long a lost session can be resumed.
    public var resumeWindowSeconds: Int

    /// Makes an answer.
    public init(
        webSocketURL: String, iceServers: [ICEServer], iceServersSeconds: Int? = nil, keepaliveSeconds: Int,
        resumeWindowSeconds: Int
    ) {
        self.webSocketURL = webSocketURL
        self.iceServers = iceServers
        self.iceServersSeconds = iceServersSeconds
        self.keepaliveSeconds = keepaliveSeconds
        self.resumeWindowSeconds = resumeWindowSeconds
    }

    private enum CodingKeys: String, CodingKey {
        case webSocketURL = "websocket_url"
        case iceServers = "ice_servers"
        case iceServersSeconds = "ice_servers_seconds"
        case keepaliveSeconds = "keepalive_seconds"
        case resumeWindowSeconds = "resume_window_seconds"
    }
}

/// Answer to `GET /v1/web-config`: what the exchange's own page needs to log its user in.
public struct WebConfiguration: Codable, Hashable, Sendable {
    /// A user that every visitor may log in as: in the demonstration only.
    public struct Guest: Codable, Hashable, Sendable {
        /// The user's id.
        public var user: UserID
        /// The token that the user logs in with.
        public var mediaToken: Redacted<String>

        /// Makes an entry.
        public init(user: UserID, mediaToken: Redacted<String>) {
            self.user = user
            self.mediaToken = mediaToken
        }

        private enum CodingKeys: String, CodingKey { case user, mediaToken = "media_token" }
    }

    /// The key of the page's application.
    public var appKey: ApplicationKey
    /// Its secret, which everyone who can open the page can read; it changes at each start of the exchange.
    public var appSecret: String
    /// Users that every visitor may log in as.
    public var guests: [Guest]

    /// Makes an answer.
    public init(appKey: ApplicationKey, appSecret: String, guests: [Guest]) {
        self.appKey = appKey
        self.appSecret = appSecret
        self.guests = guests
    }

    private enum CodingKeys: String, CodingKey { case guests, appKey = "app_key", appSecret = "app_secret" }
}

/// Body of a REST answer that is not a success.
public struct RESTFailure: Codable, Hashable, Sendable {
    /// The error's details.
    public struct Details: Codable, Hashable, Sendable {
        /// A stable name; see ``RESTErrorCode`` for those that the exchange gives.
        public var code: String
        /// A sentence for people.
        public var message: String
        /// With `standby`: where clients find the exchange that owns the database, if it says so in its configuration.
        public var owner: String?

        /// Makes details.
        public init(code: String, message: String, owner: String? = nil) {
            self.code = code
            self.message = message
            self.owner = owner
        }
    }

    /// The error.
    public var error: Details

    /// Makes the body of an error that the exchange gives.
    public init(_ code: RESTErrorCode, _ message: String, owner: String? = nil) {
        error = Details(code: code.rawValue, message: message, owner: owner)
    }
}

/// The stable names of REST errors.
public enum RESTErrorCode: String, CaseIterable, Sendable {
    /// 400: the body or a header cannot be read.
    case badRequest
    /// 401: the `Authorization` header names no application, or its secret is wrong.
    case unknownAppKey
    /// 401: no such user, or not this password.
    case wrongPassword
    /// 401: no user has this media token.
    case wrongMediaToken
    /// 401: no such user, or not this user's access token.
    case wrongAccessToken
    /// 401: no such user, or the signature is by none of its keys.
    case wrongKey
    /// 401: the challenge is not of this exchange, or was used, or is too old.
    case challengeExpired
    /// 401: there is no such enrolment.
    case enrollmentUnknown
    /// 401: the code is too old.
    case enrollmentExpired
    /// 401: another device has used the code.
    case enrollmentUsed
    /// 401: there is no Bearer token, or it never was good.
    case tokenRejected
    /// 401: the token has expired.
    case tokenExpired
    /// 401: the signed token has another signer's signature.
    case tokenWrongSignature
    /// 401: the signed token is valid for another session only.
    case tokenForAnotherSession
    /// 401: the token was revoked.
    case tokenRevoked
    /// 403: this login may not do that.
    case notAllowed
    /// 404: there is nothing at this path.
    case notFound
    /// 405: this path does not take this method.
    case methodNotAllowed
    /// 413: the body is larger than 64 KiB, or than 8 KiB before login.
    case tooLarge
    /// 421: the `Host` header names another host.
    case misdirected
    /// 429: retry after `Retry-After`.
    case tooManyRequests
    /// 500: the exchange failed.
    case internalError
    /// 503: the exchange is going down, or has too much to do; come back later.
    case unavailable
    /// 503: another exchange owns the database; ask that one.
    case standby

    /// The HTTP status of the error.
    public var status: Int {
        switch self {
        case .badRequest: 400
        case .unknownAppKey, .wrongPassword, .wrongMediaToken, .wrongAccessToken, .tokenRejected, .tokenExpired,
            .tokenWrongSignature, .tokenForAnotherSession, .tokenRevoked, .wrongKey, .challengeExpired,
            .enrollmentUnknown, .enrollmentExpired, .enrollmentUsed:
            401
        case .notAllowed: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .tooLarge: 413
        case .misdirected: 421
        case .tooManyRequests: 429
        case .internalError: 500
        case .unavailable, .standby: 503
        }
    }
}
