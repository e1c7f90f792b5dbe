internal import JWTKit

/// The claims as they stand in a token.
struct TokenPayload: JWTPayload {
    var iss: String
    var sub: String
    var iat: Double?
    var nbf: Double?
    var exp: Double
    var jti: String?
    var session: String?
    var role: String?
    var data: String?

    /// Claims are checked by ``SignedTokenReader``, which is told the time.
    func verify(using algorithm: some JWTAlgorithm) async throws {}
}

extension TokenPayload {
    /// Whole seconds, as most readers expect them.
    init(_ token: SignedToken) {
        iss = token.application
        sub = token.user
        iat = token.issued?.rounded(.down)
        exp = token.expires.rounded(.down)
        jti = token.id
        session = token.session?.id
        role = token.session?.role.rawValue
        data = token.session?.data
    }

    /// What the claims say, if they can be meant.
    func token() throws(SignedTokenError) -> SignedToken {
        for (name, value) in [("sub", sub), ("session", session ?? "-")] {
            let isName = !value.isEmpty && value.utf8.count <= SignedToken.maximumNameBytes
            guard isName, value.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
                throw SignedTokenError(
                    .malformed,
                    "The token's \(name) must have 1 to \(SignedToken.maximumNameBytes) bytes, and no control characters."
                )
            }
        }
        guard exp.isFinite, (iat ?? 0).isFinite, (nbf ?? 0).isFinite else {
            throw SignedTokenError(.malformed, "The token's times must be seconds since 1970.")
        }
        var token = SignedToken(application: iss, user: sub, issued: iat, expires: exp, id: jti)
        guard let session else {
            guard role == nil, data == nil else {
                throw SignedTokenError(.malformed, "A token with a role or data must name the session they are for.")
            }
            return token
        }
        guard let role = SignedToken.Role(rawValue: role ?? SignedToken.Role.publisher.rawValue) else {
            let known = SignedToken.Role.allCases.map(\.rawValue).joined(separator: ", ")
            throw SignedTokenError(.malformed, "The token's role must be one of \(known).")
        }
        guard (data?.utf8.count ?? 0) <= SignedToken.maximumDataBytes else {
            throw SignedTokenError(
                .malformed, "The token's data has at most \(SignedToken.maximumDataBytes) bytes.")
        }
        token.session = .init(id: session, role: role, data: data)
        return token
    }
}
