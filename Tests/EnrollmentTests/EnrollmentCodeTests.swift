import Cryptography
import Testing

@testable import Enrollment

@Suite struct EnrollmentCodeTests {
    private static func code(fingerprint: Bool = true, host: String = "calls.example.org") throws -> EnrollmentCode {
        var generator = FixedGenerator(state: 7)
        return try EnrollmentCode(
            host: host, port: 8_555, secret: EnrollmentSecret(using: &generator),
            fingerprint: fingerprint ? AuthorityFingerprint(digest: Digest.sha256([1, 2, 3])) : nil)
    }

    private struct FixedGenerator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state
        }
    }

    @Test("AUTH-13: A code is read as it is printed, in small letters, without hyphens and with spaces around it")
    func roundTrip() throws {
        for host in ["calls.example.org", "192.0.2.1", "2001:db8::1", "a_b-c"] {
            for fingerprint in [true, false] {
                let code = try Self.code(fingerprint: fingerprint, host: host)
                #expect(try EnrollmentCode(code.text) == code)
                #expect(try EnrollmentCode("  \(code.text.lowercased())\n") == code)
                let parts = code.text.split(separator: "/", omittingEmptySubsequences: false)
                let plain = (Array(parts[..<3]) + parts[3...].map { $0.filter { $0 != "-" }[...] }).joined(
                    separator: "/")
                #expect(try EnrollmentCode(plain) == code)
                #expect(code.server.hasPrefix(fingerprint ? "https://" : "http://"))
            }
        }
    }

    @Test("AUTH-13: A secret has 80 random bits beyond its locator, and is shown by no description")
    func secrecy() throws {
        var generator = SystemRandomNumberGenerator()
        var seen: Set<String> = []
        for _ in 0..<1_000 { seen.insert(EnrollmentSecret(using: &generator).characters) }
        #expect(seen.count == 1_000)
        #expect((EnrollmentSecret.count - EnrollmentSecret.locatorCount) * 5 == 80)
        let code = try Self.code()
        for text in ["\(code)", "\(code.secret)", String(reflecting: code), String(reflecting: code.secret)] {
            #expect(!text.contains(code.secret.text.suffix(9)) && !text.contains(code.secret.characters.suffix(8)))
        }
    }

    @Test("Letters that are taken for digits are those digits")
    func alikeLetters() throws {
        #expect(EnrollmentSecret("O0oI-1iLl-0000-0000-0000") == EnrollmentSecret("00011111000000000000"))
        #expect(EnrollmentSecret("UUUUUUUUUUUUUUUUUUUU") == nil)
        #expect(EnrollmentSecret("0000000000000000000") == nil)
    }

    @Test("Cut at any length, a code is refused in words and never taken for another")
    func truncation() throws {
        let code = try Self.code()
        for count in 0..<code.text.utf8.count {
            let cut = String(code.text.prefix(count))
            guard let read = try? EnrollmentCode(cut) else { continue }
            // Only the whole fingerprint may be missing, which makes it a code for plain text.
            #expect(read.fingerprint == nil && read.secret == code.secret, "\(cut)")
        }
    }

    @Test(
        "Texts that are no codes are refused",
        arguments: [
            "", "handset://", "https://calls.example.org/x", "handset://host/SECRET", "handset://host:0/\(zeros)",
            "handset://host:65536/\(zeros)", "handset://ho st:1/\(zeros)", "handset://:1/\(zeros)",
            "handset://a:b:1/\(zeros)",
            "handset://host:1/\(zeros)/1234", "handset://host:1/\(zeros)//", "handset://häuser:1/\(zeros)",
            "handset://user@host:1/\(zeros)", "handset://[::1:1/\(zeros)", String(repeating: "handset://", count: 60),
        ])
    func refusals(text: String) {
        #expect(throws: EnrollmentCode.Fault.self) { try EnrollmentCode(text) }
    }

    private static let zeros = "00000000000000000000"

    @Test("Random bytes are read or refused, and what is read is written as it is read again")
    func randomBytes() throws {
        var generator = FixedGenerator(state: 1)
        let alphabet = Array("handset:/0123456789abcXYZ-.[]")
        for _ in 0..<20_000 {
            let tail = String(
                (0..<Int.random(in: 0...80, using: &generator)).map { _ in
                    alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
                })
            for text in [tail, "handset://\(tail)"] {
                guard let code = try? EnrollmentCode(text) else { continue }
                #expect(try EnrollmentCode(code.text) == code)
            }
        }
    }
}

@Suite struct KeyFileTests {
    @Test("A key file is read as it is written, as OpenSSL's is, and anything else is refused")
    func roundTrip() throws {
        let seed = [UInt8](0..<32)
        let text = KeyFile.text(seed: seed)
        #expect(KeyFile.seed(in: text) == seed)
        #expect(KeyFile.seed(in: "# a comment\r\n" + text.replacing("\n", with: "\r\n")) == seed)
        // Of RFC 8410 §10.3.
        let published = """
            -----BEGIN PRIVATE KEY-----
            MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
            -----END PRIVATE KEY-----
            """
        #expect(KeyFile.seed(in: published)?.prefix(4) == [0xD4, 0xEE, 0x72, 0xDB])
        for count in 0..<text.utf8.count - 1 { #expect(KeyFile.seed(in: String(text.prefix(count))) == nil) }
        #expect(KeyFile.seed(in: text.replacing("MC4C", with: "MC5C")) == nil)
        #expect(KeyFile.seed(in: String(repeating: text, count: 100)) == nil)
    }

    @Test("Ed25519 signs as RFC 8032 does, and no other message, key or length passes")
    func signatures() throws {
        func bytes(_ hex: String) -> [UInt8] {
            let digits = Array(hex)
            return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16) ?? 0 }
        }
        // RFC 8032 §7.1, test 2.
        let key = try #require(
            Ed25519.PrivateKey(seed: bytes("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")))
        #expect(key.publicKey == bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"))
        let signature = key.sign([0x72])
        #expect(
            signature
                == bytes(
                    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                        + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"))
        #expect(Ed25519.isSignature(signature, of: [0x72], by: key.publicKey))
        #expect(!Ed25519.isSignature(signature, of: [0x73], by: key.publicKey))
        #expect(!Ed25519.isSignature(Array(signature.dropLast()), of: [0x72], by: key.publicKey))
        #expect(!Ed25519.isSignature(signature, of: [0x72], by: Array(key.publicKey.dropLast())))
        var generator = SystemRandomNumberGenerator()
        let other = try #require(Ed25519.PrivateKey(using: &generator))
        #expect(!Ed25519.isSignature(signature, of: [0x72], by: other.publicKey))
        #expect(Ed25519.PrivateKey(seed: [1]) == nil)
    }
}
