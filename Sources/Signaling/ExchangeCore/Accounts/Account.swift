public import SignalWire
internal import Core
internal import Cryptography
public import Enrollment

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
    /// When the user was added, in milliseconds since 1970, if that is known: a user of the same name that was added at
    /// another time is another user.
    public var added: Int64?

    /// Makes an account.
    public init(
        id: UserID, publicIDs: [UserID] = [], routingID: String? = nil, password: Credential? = nil,
        mediaTokens: [SecretDigest] = [], streamTokens: [SecretDigest] = [], accessTokens: [SecretDigest] = [],
        keys: [DeviceKey] = [], enrollments: [EnrollmentRecord] = [], email: String? = nil, loginsSince: Int64? = nil,
        added: Int64? = nil
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
        self.added = added
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

extension Account {
    /// Whether a device that has one of the account's keys has signed this login (contract AUTH-13).
    ///
    /// - Parameters:
    ///   - account: `nil` if there is none.
    ///   - name: The id by which the device called the account.
    ///   - signature: base64url.
    package static func isLogin(
        of account: Account?, as name: String, key: DeviceKeyText, challenge: String, signature: String
    ) -> Bool {
        // The signature is also verified for an unknown user, so that timing does not reveal which users exist.
        let known = account?.keys.first { $0.key == key }
        let proof = KeyProof.loggingIn(user: name, enrollment: known?.enrollment ?? "", key: key, challenge: challenge)
        return isSignature(signature, of: proof, by: key) && known != nil
    }

    /// Whether a key is acceptable as a device key: a key of small order is refused, because anyone can sign with it.
    package static func isUsable(_ key: DeviceKeyText) -> Bool { Ed25519.isPublicKey(key.bytes) }

    /// Whether the enrolling device owns the private key.
    package static func isEnrollment(_ secret: EnrollmentSecret, key: DeviceKeyText, signature: String) -> Bool {
        isSignature(signature, of: KeyProof.enrolling(secret, key: key), by: key)
    }

    private static func isSignature(_ signature: String, of proof: [UInt8], by key: DeviceKeyText) -> Bool {
        guard signature.utf8.count <= 128, let bytes = Base64URL.bytes(of: signature.utf8) else { return false }
        return Ed25519.isSignature(bytes, of: proof, by: key.bytes)
    }
}

/// A key by which a device logs in to an account (contract AUTH-13): the public half.
public struct DeviceKey: Hashable, Sendable {
    /// Keys that one account may have.
    public static let perAccount = 64

    /// The public key.
    public let key: DeviceKeyText
    /// The exchange's unpredictable id of the enrolment, so that a signature is valid only for this exchange and this
    /// key.
    public let enrollment: String

    /// Takes both.
    ///
    /// - Returns: `nil` if the enrolment's name is none of 22 to 64 characters of base64url.
    public init?(key: DeviceKeyText, enrollment: String) {
        guard (22...64).contains(enrollment.utf8.count), enrollment.utf8.allSatisfy(Self.isPlain) else { return nil }
        self.key = key
        self.enrollment = enrollment
    }

    /// Reads what ``text`` writes.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "ed25519", let key = DeviceKeyText(parts[1]) else { return nil }
        self.init(key: key, enrollment: String(parts[2]))
    }

    /// The entry's text in a users file.
    public var text: String { "ed25519.\(key.text).\(enrollment)" }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// What a password is checked against.
public enum Credential: Hashable, Sendable {
    /// A hash of the password, as a configuration holds it.
    case hash(PasswordHash)
    /// A digest of a password that was read from a file or the environment at start.
    case digest(SecretDigest)

    /// Whether `password` is the one. May take a tenth of a second: not for an event loop.
    package func matches(_ password: Redacted<String>) -> Bool {
        switch self {
        case .hash(let hash): hash.matches(password.secret)
        case .digest(let digest): digest == SecretDigest(of: password.secret)
        }
    }
}
