internal import JWTKit

/// Makes signed tokens: what an application's own server does with whatever library it has.
public enum SignedTokenMint {
    /// Signs a token.
    ///
    /// - Throws: ``SignedTokenError`` if an exchange would not take it.
    public static func sign(_ token: SignedToken, with key: SigningKey) async throws(SignedTokenError) -> String {
        let payload = TokenPayload(token)
        _ = try payload.token()
        let text: String?
        do {
            let keys = await JWTKeyCollection().add(hmac: HMACKey(key: key.secret), digestAlgorithm: .sha256)
            text = try await keys.sign(payload)
        } catch {
            text = nil
        }
        guard let text, text.utf8.count <= SignedToken.maximumBytes else {
            throw SignedTokenError(.malformed, "The token cannot be written: its claims are too long.")
        }
        return text
    }
}
