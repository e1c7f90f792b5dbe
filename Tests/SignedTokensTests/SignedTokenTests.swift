import Cryptography
import Foundation
import SignalWire
import ExchangeCore
import Testing

/// An application's claims, as a server that was written without this project would sign them.
private struct Claims: Encodable {
    var iss: String? = "app"
    var sub: String? = "alice"
    var iat: Double? = 1_000
    var nbf: Double?
    var exp: Double? = 2_000
    var jti: String?
    var session: String?
    var role: String?
    var data: String?
}

/// Tokens that Python's `hmac` and `json` made, with keys sorted and no spaces.
private enum Foreign {
    /// All claims, and the header of the exchange's own tokens.
    static let whole = """
        eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
        eyJkYXRhIjoie1wic2VhdFwiOiA0fSIsImV4cCI6MjAwMCwiaWF0IjoxMDAwLCJpc3MiOiJhcHAiLCJqdGkiOiJ0LTEiLCJyb2xlIjoic3Vi\
        c2NyaWJlciIsInNlc3Npb24iOiJsb2JieSIsInN1YiI6ImFsaWNlIn0.\
        fFZuI6NrapSzcfQEI-q7yKH6Cx2TNIJRZzxUid8wDes
        """
    /// The least that a token says.
    static let least = """
        eyJhbGciOiJIUzI1NiJ9.\
        eyJleHAiOjIwMDAsImlzcyI6ImFwcCIsInN1YiI6ImFsaWNlIn0.\
        IZiGBUxluImTQVH_bWD-T8Z0f_arMFMpDkpqcIKKnrU
        """
    /// HS512, with the long secret.
    static let strong = """
        eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.\
        eyJleHAiOjIwMDAsImlhdCI6MTAwMCwiaXNzIjoiYXBwIiwic3ViIjoiYWxpY2UifQ.\
        gfa2AvzUg1wNHCa3HVsQp57QxeQh3269SXj5yulavN07hu27CVU02u9APib8VNYsIWRSrnCNPTnvsq8KxJlfIA
        """
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

    private static func base64(_ bytes: some Sequence<UInt8>) -> String {
        let text = Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        return String(text.prefix { $0 != "=" })
    }

    /// Signs whatever is given, also what an exchange does not take. `Cryptography` is held to the vectors of RFCs.
    private func sign(
        _ claims: Claims, secret: String = secret, header: String = #"{"alg":"HS256","typ":"JWT"}"#
    ) throws -> String {
        let signed = "\(Self.base64(header.utf8)).\(Self.base64(try JSONEncoder().encode(claims)))"
        let code = Digest.hmacSHA256(Array(secret.utf8), Array(signed.utf8))
        return "\(signed).\(Self.base64(code))"
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

    @Test(
        "AUTH-5: A minted token says user, session, role, expiry and connection data, and is what Python makes of them")
    func roundTrip() throws {
        let token = SignedToken(
            application: "app", user: "alice", issued: 1_000, expires: 2_000, id: "t-1",
            session: .init(id: "lobby", role: .subscriber, data: #"{"seat": 4}"#))
        let text = try SignedTokenMint.sign(token, with: key)
        #expect(SignedToken.isSigned(text) && !SignedToken.isSigned("opaque") && !SignedToken.isSigned("a.b"))
        #expect(try reader.read(text, at: 1_999) == token)
        #expect(try SignedTokenReader.inspect(text).token == token)
        #expect(text == Foreign.whole)
    }

    @Test("A token that Python made with no more than it must say is good, and not with a character of it changed")
    func foreign() throws {
        let token = SignedToken(application: "app", user: "alice", issued: nil, expires: 2_000)
        #expect(try reader.read(Foreign.least, at: 1_500) == token)
        #expect(refusal(Foreign.least.replacing("IZiGB", with: "IZiGC")) == .wrongSignature)
    }

    @Test("A token whose end is no time is not minted")
    func unwritable() {
        for expires in [Double.nan, .infinity] {
            #expect(throws: SignedTokenError.self) {
                try SignedTokenMint.sign(
                    SignedToken(application: "app", user: "alice", issued: 1_000, expires: expires), with: key)
            }
        }
    }

    @Test(
        "AUTH-5: A wrong signature, an expired token and an unknown application are distinguished, the signature first"
    )
    func refusals() throws {
        let good = try sign(Claims())
        #expect(refusal(good) == nil)
        #expect(refusal(good, at: 2_000) == .expired)
        #expect(refusal(good, at: 930) == .notYetValid)
        #expect(refusal(good, at: 945) == nil, "clocks may differ by a minute")
        let other = "another secret of more than thirty-two bytes"
        #expect(refusal(try sign(Claims(), secret: other)) == .wrongSignature)
        #expect(refusal(try sign(Claims(), secret: other), at: 9_999) == .wrongSignature)
        #expect(refusal(try sign(Claims(iss: "nobody"))) == .unknownApplication)
        #expect(refusal(try sign(Claims(iat: 1_000, exp: 6_001))) == .malformed, "good for too long")
        #expect(refusal(try sign(Claims(iat: nil, exp: 6_001))) == nil)
        #expect(refusal(try sign(Claims(nbf: 1_600))) == .notYetValid)
    }

    @Test("Only HS256 counts: not another algorithm with the same secret, none at all, or one with critical extensions")
    func algorithms() throws {
        let key = try #require(SigningKey(name: "app", secret: Self.long))
        let other = SignedTokenReader([key], maximumLifetime: 5_000)
        #expect(throws: SignedTokenError.self) { try other.read(Foreign.strong, at: 1_500) }
        #expect(try other.read(try sign(Claims(), secret: Self.long), at: 1_500).user == "alice")
        let good = try sign(Claims())
        let parts = good.split(separator: ".").map(String.init)
        for header in [#"{"alg":"none"}"#, #"{"alg":"HS256 "}"#, #"{"typ":"JWT"}"#] {
            #expect(refusal("\(Self.base64(header.utf8)).\(parts[1]).\(parts[2])") == .wrongSignature)
            #expect(refusal("\(Self.base64(header.utf8)).\(parts[1]).") == .wrongSignature)
        }
        // Even with a signature that is right for it, a header must not say anything else.
        for name in ["none", "hs256", "HS512", "RS256"] {
            #expect(refusal(try sign(Claims(), header: #"{"alg":"\#(name)"}"#)) == .wrongSignature)
        }
        let critical = try sign(Claims(), header: #"{"alg":"HS256","crit":["exp"]}"#)
        #expect(refusal(critical) == .wrongSignature)
    }

    @Test(
        "A token cut off anywhere, with any byte changed, or with claims of the wrong kind is refused and traps nothing"
    )
    func damage() throws {
        let good = try sign(Claims(session: "lobby", data: "d"))
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
        ] { #expect(refusal(try sign(claims)) == .malformed, "\(claims)") }
    }

    @Test("AUTH-9: A token has one spelling: padding, another alphabet and spare bits are refused in each part")
    func spellings() throws {
        // Parts of every length modulo 4 that base64url has, and with both characters that the alphabets differ in.
        var seen: Set<Int> = []
        for length in 0..<24 {
            let token = try sign(Claims(session: "lobby", data: String(repeating: "ÿ>?", count: length)))
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
    func emptyID() throws {
        for (jti, id) in [("", nil), (nil, nil), ("t-1", "t-1")] as [(String?, TokenID?)] {
            #expect(try reader.read(try sign(Claims(jti: jti)), at: 1_500).id == id)
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
