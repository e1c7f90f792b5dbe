internal import Cryptography
public import SignalWire
internal import Core

/// Checks signed tokens against the keys of applications; signatures are compared in constant time.
public struct SignedTokenReader: Sendable {
    /// What a token's clock may be ahead of this one's, in seconds.
    public static let clockTolerance: Double = 60

    private let keys: [ApplicationKey: SigningKey]
    /// How long a token may be good for, in seconds.
    private let maximumLifetime: Double

    /// - Parameters:
    ///   - keys: Of two with one name the first counts.
    ///   - maximumLifetime: In seconds, from signing to expiry; a token that does not say when it was signed may have
    ///     that much before it.
    public init(_ keys: [SigningKey], maximumLifetime: Double) {
        self.keys = Dictionary(keys.map { ($0.name, $0) }) { first, _ in first }
        self.maximumLifetime = maximumLifetime
    }

    /// What `token` says, if it is good at `now`.
    ///
    /// - Parameter now: Seconds since 1970.
    /// - Throws: Which of signature, expiry and the rest is wrong, the signature first: nothing in a token that is
    ///   not the application's is worth a word.
    public func read(_ token: String, at now: Double) throws(SignedTokenError) -> SignedToken {
        let text = try TokenText(parsing: token)
        let payload = text.payload
        guard let issuer = try? ApplicationKey(payload.iss), let key = keys[issuer] else {
            throw SignedTokenError(
                .unknownApplication, "No application here has the API key that the token names as its issuer (iss).")
        }
        let signed = token.utf8.prefix(upTo: token.utf8.lastIndex(of: UInt8(ascii: ".")) ?? token.utf8.endIndex)
        guard text.algorithm == "HS256", !text.isCritical,
            Digest.areEqual(text.signature, Digest.hmacSHA256(key.secret.secret, Array(signed)))
        else {
            throw SignedTokenError(
                .wrongSignature,
                "The token's signature is wrong: it must be HS256 with the secret of the API key that it names.")
        }
        let result = try payload.token()
        guard now < result.expires else {
            throw SignedTokenError(.expired, "The token has expired; ask for a new one.")
        }
        guard max(payload.nbf ?? now, payload.iat ?? now) <= now + Self.clockTolerance else {
            throw SignedTokenError(
                .notYetValid, "The token is not valid yet; compare the clocks of both machines.")
        }
        guard result.expires - (result.issued ?? now) <= maximumLifetime else {
            throw SignedTokenError(
                .malformed, "The token is valid for longer than the limit of \(Int(maximumLifetime)) seconds.")
        }
        return result
    }

    /// What `token` says, good or not, and with which algorithm it claims to be signed.
    public static func inspect(_ token: String) throws(SignedTokenError) -> (token: SignedToken, algorithm: String) {
        let text = try TokenText(parsing: token)
        return (try text.payload.token(), text.algorithm ?? "none")
    }
}

/// An application's key: its name, which tokens carry, and the secret that signs them.
public struct SigningKey: Sendable, CustomStringConvertible, CustomReflectable {
    /// Bytes in a secret, at least: as many as the hash has (RFC 7518 §3.2).
    public static let minimumSecretBytes = 32

    /// The name.
    public let name: ApplicationKey
    let secret: Redacted<[UInt8]>

    /// Makes a key; `nil` if the secret is shorter than ``minimumSecretBytes``.
    public init?(name: ApplicationKey, secret: String) {
        guard secret.utf8.count >= Self.minimumSecretBytes else { return nil }
        self.name = name
        self.secret = Redacted(Array(secret.utf8))
    }

    /// The name alone.
    public var description: String { name.text }
    /// A mirror with the name alone.
    public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}

/// Makes signed tokens, as an application's own server does with a library of its choice.
public enum SignedTokenMint {
    /// The one header that an exchange takes.
    private static let header = Base64URL.text(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8))

    /// Signs a token.
    ///
    /// - Throws: ``SignedTokenError`` if an exchange would not take it.
    public static func sign(_ token: SignedToken, with key: SigningKey) throws(SignedTokenError) -> String {
        let payload = TokenPayload(token)
        _ = try payload.token()
        // Its numbers are finite, as has just been checked, so that JSON has them.
        guard let claims = try? SignalCoding.encode(payload) else {
            throw SignedTokenError(.malformed, "The token cannot be written: JSON cannot represent its claims.")
        }
        let signed = "\(header).\(Base64URL.text(claims))"
        let text = "\(signed).\(Base64URL.text(Digest.hmacSHA256(key.secret.secret, Array(signed.utf8))))"
        guard text.utf8.count <= SignedToken.maximumBytes else {
            throw SignedTokenError(.malformed, "The token cannot be written: its claims are too long.")
        }
        return text
    }
}
