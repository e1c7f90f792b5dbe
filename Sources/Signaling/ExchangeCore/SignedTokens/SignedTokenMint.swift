internal import Core
internal import Cryptography
internal import SignalWire

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
