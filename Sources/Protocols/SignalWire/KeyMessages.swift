/// Body of `POST /v1.1/login/challenge`: asks for what a login by key has to sign (AUTH-13).
public struct ChallengeRequest: Codable, Hashable, Sendable {
    /// The user that logs in.
    public var userID: UserID
    /// The public key, base64url.
    public var publicKey: String

    /// Makes the body.
    public init(userID: UserID, publicKey: String) {
        self.userID = userID
        self.publicKey = publicKey
    }

    private enum CodingKeys: String, CodingKey {
        case userID = "user_id"
        case publicKey = "public_key"
    }
}

/// Answer to a request for a challenge.
public struct ChallengeResponse: Codable, Hashable, Sendable {
    /// Good for one login of this user with this key.
    public var challenge: String
    /// Seconds until it expires.
    public var expiresIn: Double

    /// Makes an answer.
    public init(challenge: String, expiresIn: Double) {
        self.challenge = challenge
        self.expiresIn = expiresIn
    }

    private enum CodingKeys: String, CodingKey { case challenge, expiresIn = "expires_in" }
}

/// Body of `POST /v1.1/enroll`: a device joins, with a code and its own key (AUTH-13).
public struct EnrollmentRequest: Codable, Hashable, Sendable {
    /// The code's secret.
    public var code: Redacted<String>
    /// The public key, base64url.
    public var publicKey: String
    /// Shows that the device has the private key; base64url.
    public var signature: Redacted<String>

    /// Makes the body.
    public init(code: Redacted<String>, publicKey: String, signature: Redacted<String>) {
        self.code = code
        self.publicKey = publicKey
        self.signature = signature
    }

    private enum CodingKeys: String, CodingKey { case code, signature, publicKey = "public_key" }
}

/// Answer to an enrolment.
public struct EnrollmentResponse: Codable, Hashable, Sendable {
    /// The user that the device logs in as from now on.
    public var userID: UserID
    /// The exchange's id of this enrolment, which is signed at each login.
    public var enrollment: String

    /// Makes an answer.
    public init(userID: UserID, enrollment: String) {
        self.userID = userID
        self.enrollment = enrollment
    }

    private enum CodingKeys: String, CodingKey { case enrollment, userID = "user_id" }
}
