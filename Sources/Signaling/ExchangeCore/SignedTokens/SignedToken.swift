// SignedTokens: what an application's own server vouches for, as JSON Web Tokens (RFC 7519) signed with HMAC-SHA256
// (RFC 7515, RFC 7518 §3.2). Devices pass such tokens on unread.

public import SignalWire

/// What a signed token says.
public struct SignedToken: Hashable, Sendable {
    /// The role that the token grants in its session.
    public enum Role: String, CaseIterable, Codable, Sendable {
        /// Takes part.
        case publisher
        /// Listens.
        case subscriber
        /// Takes part, and has a say over others.
        case moderator
    }

    /// The one session that a token is restricted to (AUTH-5).
    public struct Session: Hashable, Sendable {
        /// Its id.
        public var id: RoomName
        /// What the bearer may do there.
        public var role: Role
        /// Data about the user that the other participants receive; at most ``SignedToken/maximumDataBytes``.
        public var data: String?

        /// Names a session.
        public init(id: RoomName, role: Role = .publisher, data: String? = nil) {
            self.id = id
            self.role = role
            self.data = data
        }
    }

    /// The key of the application that vouches for it (`iss`).
    public var application: ApplicationKey
    /// The user that it identifies (`sub`).
    public var user: UserID
    /// When it was signed (`iat`), in seconds since 1970; `nil` if it does not say.
    public var issued: Double?
    /// From when on it is not good any more (`exp`), in seconds since 1970.
    public var expires: Double
    /// Distinguishes it from the same user's other tokens (`jti`).
    public var id: TokenID?
    /// The one session that it is restricted to; `nil` if it grants all that the user may do.
    public var session: Session?

    /// Bytes in the connection data, at most.
    public static let maximumDataBytes = 1_000
    /// Bytes in a token, at most.
    public static let maximumBytes = 8_192

    /// Makes a token's contents.
    public init(
        application: ApplicationKey, user: UserID, issued: Double?, expires: Double, id: TokenID? = nil,
        session: Session? = nil
    ) {
        self.application = application
        self.user = user
        self.issued = issued
        self.expires = expires
        self.id = id
        self.session = session
    }

    /// Whether a token has the form of a signed one, good or not. Tokens that an exchange issues itself have not.
    public static func isSigned(_ token: String) -> Bool { token.utf8.count { $0 == UInt8(ascii: ".") } == 2 }
}

/// Why a signed token is not taken, or cannot be made.
public struct SignedTokenError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What to match on.
    public enum Code: Sendable {
        /// It is no token, or has contents that this exchange does not accept.
        case malformed
        /// The exchange has no key of the application.
        case unknownApplication
        /// The signature is not the application's.
        case wrongSignature
        /// It was good once.
        case expired
        /// Its time of signature lies in the future.
        case notYetValid
    }

    /// What to match on.
    public let code: Code
    /// What is wrong, and what to try. Never holds the token.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
