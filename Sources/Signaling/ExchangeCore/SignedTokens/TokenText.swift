internal import Core
internal import JSON
import SignalWire

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
