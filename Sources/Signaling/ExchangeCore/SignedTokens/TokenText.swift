internal import Core
internal import JSON
internal import SignalWire

/// The text of a token (RFC 7515 §7.1): three parts in base64url, of which only the form has been checked.
///
/// This bounded reader is the first to parse input from unauthenticated clients; it is fuzzed.
struct TokenText {
    /// `alg`, if the header has one that is text.
    let algorithm: String?
    /// The header asks that something be understood (`crit`).
    let isCritical: Bool
    let payload: TokenPayload
    let signature: [UInt8]

    /// Reads a token. Any text may be given.
    init(parsing token: String) throws(SignedTokenError) {
        guard token.utf8.count <= SignedToken.maximumBytes else {
            throw SignedTokenError(.malformed, "A token has at most \(SignedToken.maximumBytes) bytes.")
        }
        var parts: [[UInt8]] = []
        for part in token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            // In another encoding, a revoked token would look like an unknown one.
            guard let bytes = Base64URL.bytes(of: part) else {
                throw SignedTokenError(
                    .malformed,
                    "The token is not base64url as RFC 7515 §2 requires it: without padding and without spare bits."
                )
            }
            parts.append(bytes)
        }
        guard parts.count == 3 else { throw Self.noToken }
        // Errors of the reader are left out, because they may quote the token.
        guard let header = try? SignalCoding.decode(JSONValue.self, from: parts[0]), case .object = header,
            let payload = try? SignalCoding.decode(TokenPayload.self, from: parts[1])
        else { throw Self.noToken }
        algorithm = header["alg"]?.string
        isCritical = header["crit"] != nil
        self.payload = payload
        signature = parts[2]
    }

    private static let noToken = SignedTokenError(
        .malformed, "The token is not a JSON Web Token with iss, sub and exp of the right kinds.")
}

/// The claims as encoded in a token.
struct TokenPayload: Codable, Sendable {
    var iss: String
    var sub: String
    var iat: Double?
    var nbf: Double?
    var exp: Double
    var jti: String?
    var session: String?
    var role: String?
    var data: String?
}

extension TokenPayload {
    /// Whole seconds, as most readers expect them.
    init(_ token: SignedToken) {
        iss = token.application.text
        sub = token.user.text
        iat = token.issued?.rounded(.down)
        exp = token.expires.rounded(.down)
        jti = token.id?.text
        session = token.session?.id.text
        role = token.session?.role.rawValue
        data = token.session?.data
    }

    /// What the claims say, if they can be meant.
    func token() throws(SignedTokenError) -> SignedToken {
        guard exp.isFinite, (iat ?? 0).isFinite, (nbf ?? 0).isFinite else {
            throw SignedTokenError(.malformed, "The token's times must be seconds since 1970.")
        }
        var token = SignedToken(
            application: try Self.name(iss, "iss"), user: try Self.name(sub, "sub"), issued: iat, expires: exp,
            id: try jti.flatMap { jti throws(SignedTokenError) in
                // An empty `jti` distinguishes tokens no more than a missing one.
                jti.isEmpty ? nil : try Self.name(jti, "jti")
            })
        guard let session else {
            guard role == nil, data == nil else {
                throw SignedTokenError(.malformed, "A token with a role or data must name a session.")
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
        token.session = .init(id: try Self.name(session, "session"), role: role, data: data)
        return token
    }

    private static func name<Kind>(_ text: String, _ claim: String) throws(SignedTokenError) -> Identifier<Kind> {
        do throws(IdentifierFault) {
            return try Identifier(text)
        } catch {
            throw SignedTokenError(.malformed, "The token's \(claim) \(error).")
        }
    }
}
