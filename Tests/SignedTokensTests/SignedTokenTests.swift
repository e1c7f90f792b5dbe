import Foundation
import JWTKit
import SignalWire
import SignedTokens
import Testing

/// An application's claims, as a server that was written without this project would sign them.
private struct Claims: JWTPayload {
    var iss: String? = "app"
    var sub: String? = "alice"
    var iat: Double? = 1_000
    var nbf: Double?
    var exp: Double? = 2_000
    var jti: String?
    var session: String?
    var role: String?
    var data: String?

    func verify(using algorithm: some JWTAlgorithm) async throws {}
}

@Suite struct SignedTokenTests {
    private static let secret = "a secret of more than thirty-two bytes"
    private static let long = String(repeating: "a secret of thirty-two bytes or ", count: 2)
    private let reader: SignedTokenReader
    private let key: SigningKey

    init() throws {
        key = try #require(SigningKey(name: "app", secret: Self.secret))
        reader = SignedTokenReader([key], maximumLifetime: 5_000)
    }

    private func sign(
        _ claims: Claims, secret: String = secret, algorithm: DigestAlgorithm = .sha256, header: JWTHeader = [:]
    ) async throws -> String {
        let keys = await JWTKeyCollection().add(hmac: HMACKey(from: secret), digestAlgorithm: algorithm)
        return try await keys.sign(claims, header: header)
    }

    /// Why a token is not taken at `now`; `nil` if it is.
    private func refusal(_ token: String, at now: Double = 1_500) -> SignedTokenError.Code? {
        do throws(SignedTokenError) {
            _ = try reader.read(token, at: now)
            return nil
        } catch {
            #expect(token.utf8.count < 20 || !error.description.contains(token))
            #expect(!error.description.contains(Self.secret))
            return error.code
        }
    }

    @Test("AUTH-5: A minted token says user, session, role, expiry and connection data, to us and to the library alone")
    func roundTrip() async throws {
        let token = SignedToken(
            application: "app", user: "alice", issued: 1_000, expires: 2_000, id: "t-1",
            session: .init(id: "lobby", role: .subscriber, data: #"{"seat": 4}"#))
        let text = try await SignedTokenMint.sign(token, with: key)
        #expect(SignedToken.isSigned(text) && !SignedToken.isSigned("opaque") && !SignedToken.isSigned("a.b"))
        #expect(try reader.read(text, at: 1_999) == token)
        #expect(try SignedTokenReader.inspect(text).token == token)

        let keys = await JWTKeyCollection().add(hmac: HMACKey(from: Self.secret), digestAlgorithm: .sha256)
        let claims = try await keys.verify(text, as: Claims.self)
        #expect(claims.session == "lobby" && claims.role == "subscriber" && claims.exp == 2_000)
    }

    @Test("AUTH-5: A wrong signature, an expired token and an unknown application are told apart, the signature first")
    func refusals() async throws {
        let good = try await sign(Claims())
        #expect(refusal(good) == nil)
        #expect(refusal(good, at: 2_000) == .expired)
        #expect(refusal(good, at: 930) == .notYetValid)
        #expect(refusal(good, at: 945) == nil, "clocks may differ by a minute")
        let other = "another secret of more than thirty-two bytes"
        #expect(refusal(try await sign(Claims(), secret: other)) == .wrongSignature)
        #expect(refusal(try await sign(Claims(), secret: other), at: 9_999) == .wrongSignature)
        #expect(refusal(try await sign(Claims(iss: "nobody"))) == .unknownApplication)
        #expect(refusal(try await sign(Claims(iat: 1_000, exp: 6_001))) == .malformed, "good for too long")
        #expect(refusal(try await sign(Claims(iat: nil, exp: 6_001))) == nil)
        #expect(refusal(try await sign(Claims(nbf: 1_600))) == .notYetValid)
    }

    @Test("Only HS256 counts: not another algorithm with the same secret, none at all, or one with critical extensions")
    func algorithms() async throws {
        let key = try #require(SigningKey(name: "app", secret: Self.long))
        let other = SignedTokenReader([key], maximumLifetime: 5_000)
        let strong = try await sign(Claims(), secret: Self.long, algorithm: .sha512)
        #expect(throws: SignedTokenError.self) { try other.read(strong, at: 1_500) }
        #expect(try other.read(try await sign(Claims(), secret: Self.long), at: 1_500).user == "alice")
        let good = try await sign(Claims())
        let parts = good.split(separator: ".").map(String.init)
        func base64(_ text: String) -> String {
            String(Data(text.utf8).base64EncodedString().prefix { $0 != "=" })
        }
        for header in [#"{"alg":"none"}"#, #"{"alg":"HS256 "}"#, #"{"typ":"JWT"}"#] {
            #expect(refusal("\(base64(header)).\(parts[1]).\(parts[2])") == .wrongSignature)
            #expect(refusal("\(base64(header)).\(parts[1]).") == .wrongSignature)
        }
        // Even with a signature that is right for it, a header must not say anything else.
        for name in ["none", "hs256", "HS512", "RS256"] {
            #expect(refusal(try await sign(Claims(), header: ["alg": .string(name)])) == .wrongSignature)
        }
        let critical = try await sign(Claims(), header: ["crit": .array([.string("exp")])])
        #expect(refusal(critical) == .wrongSignature)
    }

    @Test(
        "A token cut off anywhere, with any byte changed, or with claims of the wrong kind is refused and traps nothing"
    )
    func damage() async throws {
        let good = try await sign(Claims(session: "lobby", data: "d"))
        for length in 0..<good.utf8.count { #expect(refusal(String(good.prefix(length))) != nil) }
        let bytes = Array(good.utf8)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(refusal(String(decoding: changed, as: UTF8.self)) != nil, "byte \(index)")
        }
        #expect(refusal("..") == .malformed && refusal(good + ".x") == .malformed)
        #expect(refusal(String(repeating: "a", count: 9_000) + "..") == .malformed)
        for claims in [
            Claims(sub: nil), Claims(sub: ""), Claims(exp: nil), Claims(sub: "a\u{1F}b"), Claims(role: "publisher"),
            Claims(session: "lobby", role: "king"), Claims(session: ""),
            Claims(session: "lobby", data: String(repeating: "x", count: 1_001)),
            Claims(sub: String(repeating: "x", count: 257)), Claims(sub: "al\u{202E}ice"), Claims(sub: "alice\0"),
            Claims(sub: "e\u{301}"), Claims(session: "lob\u{200B}by"), Claims(session: "lobby\0"), Claims(jti: "t\n1"),
            Claims(jti: String(repeating: "x", count: 257)),
        ] { #expect(refusal(try await sign(claims)) == .malformed, "\(claims)") }
    }

    @Test("AUTH-9: A token has one spelling: padding, another alphabet and spare bits are refused in each part")
    func spellings() async throws {
        // Parts of every length modulo 4 that base64url has, and with both characters that the alphabets differ in.
        var seen: Set<Int> = []
        for length in 0..<24 {
            let token = try await sign(Claims(session: "lobby", data: String(repeating: "ÿ>?", count: length)))
            #expect(refusal(token) == nil)
            for (index, spelling) in Self.respellings(of: token) {
                seen.insert(index)
                #expect(refusal(spelling) == .malformed, "\(spelling)")
            }
            #expect(refusal(token) == nil)
        }
        #expect(seen == [0, 1, 2])
    }

    /// Other ways to write the same bytes, with the part that is written otherwise.
    private static func respellings(of token: String) -> [(part: Int, token: String)] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let parts = token.split(separator: ".").map(String.init)
        return parts.indices.flatMap { index -> [(Int, String)] in
            let part = parts[index]
            var others = [part + "=", part + "==", part + "===", part + " ", part + "\n", "=" + part]
            others.append(part.replacing("-", with: "+").replacing("_", with: "/"))
            let spare = [2: 16, 3: 4][part.count % 4] ?? 1
            if let last = part.last, let value = alphabet.firstIndex(of: last) {
                others += (1..<spare).map { String(part.dropLast()) + String(alphabet[value + $0]) }
            }
            return others.filter { $0 != part }.map { other in
                var changed = parts
                changed[index] = other
                return (index, changed.joined(separator: "."))
            }
        }
    }

    @Test("A token whose jti is empty has none")
    func emptyID() async throws {
        for (jti, id) in [("", nil), (nil, nil), ("t-1", "t-1")] as [(String?, TokenID?)] {
            #expect(try reader.read(try await sign(Claims(jti: jti)), at: 1_500).id == id)
        }
    }

    @Test("A secret shorter than the hash is no key, and a key does not show its secret")
    func keys() {
        #expect(SigningKey(name: "app", secret: String(repeating: "x", count: 31)) == nil)
        #expect(!"\(key)".contains("secret") && !String(reflecting: key).contains("secret"))
        var dumped = ""
        dump(key, to: &dumped)
        #expect(!dumped.contains("secret"))
    }
}
