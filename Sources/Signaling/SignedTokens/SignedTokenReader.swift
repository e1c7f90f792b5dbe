internal import Crypto
internal import FoundationEssentials
internal import JWTKit
import SignalWire

/// Checks signed tokens against the keys of applications.
///
/// The library's own check can only be awaited, and a connection's requests must be handled in their order; so the
/// library reads the token here, and its cryptographic half (swift-crypto) checks the signature, in constant time.
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
        let (header, payload, signature) = try Self.parse(token)
        guard let issuer = try? ApplicationKey(payload.iss), let key = keys[issuer] else {
            throw SignedTokenError(
                .unknownApplication, "No application here has the API key that the token names as its issuer (iss).")
        }
        let signed = token.utf8.prefix(upTo: token.utf8.lastIndex(of: UInt8(ascii: ".")) ?? token.utf8.endIndex)
        guard header.alg == "HS256", header.fields["crit"] == nil,
            HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: Array(signed), using: key.secret)
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
                .notYetValid, "The token is good from a later time on; compare the clocks of both machines.")
        }
        guard result.expires - (result.issued ?? now) <= maximumLifetime else {
            throw SignedTokenError(
                .malformed, "The token is good for longer than the \(Int(maximumLifetime)) seconds allowed here.")
        }
        return result
    }

    /// What `token` says, good or not, and with which algorithm it claims to be signed.
    public static func inspect(_ token: String) throws(SignedTokenError) -> (token: SignedToken, algorithm: String) {
        let (header, payload, _) = try parse(token)
        return (try payload.token(), header.alg ?? "none")
    }

    /// Whether `part` is the one way to write its bytes in base64url (RFC 4648 §3.5, §5; RFC 7515 §2). The library
    /// takes others too: by those, a token that was taken back would look like one that nobody has seen.
    private static func isCanonical(_ part: Substring) -> Bool {
        var last: UInt8 = 0
        for character in part.utf8 {
            guard let value = Self.value(of: character) else { return false }
            last = value
        }
        switch part.utf8.count % 4 {
        case 0: return true
        case 2: return last & 0b1111 == 0
        case 3: return last & 0b11 == 0
        default: return false
        }
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }

    private static func parse(
        _ token: String
    ) throws(SignedTokenError) -> (header: JWTHeader, payload: TokenPayload, signature: Data) {
        guard token.utf8.count <= SignedToken.maximumBytes else {
            throw SignedTokenError(.malformed, "A token has at most \(SignedToken.maximumBytes) bytes.")
        }
        guard token.split(separator: ".", omittingEmptySubsequences: false).allSatisfy(isCanonical) else {
            throw SignedTokenError(
                .malformed,
                "The token is not written in base64url as RFC 7515 §2 asks: without padding, and with no bits to spare."
            )
        }
        do {
            return try DefaultJWTParser().parse(Array(token.utf8), as: TokenPayload.self)
        } catch {
            // The library's message may quote the token.
            throw SignedTokenError(
                .malformed, "The token is no JSON Web Token with iss, sub and exp of the right kinds.")
        }
    }
}
