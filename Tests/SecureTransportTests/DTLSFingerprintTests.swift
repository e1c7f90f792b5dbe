import SecureTransport
import TestSupport
import Testing

@Suite("DTLS fingerprints")
struct DTLSFingerprintTests {
    private let text =
        "sha-256 6B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:3F:46:1B:35:DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08"

    @Test("A fingerprint reads, in either case of letters, and is written as it was")
    func roundTrip() throws {
        let fingerprint = try DTLSFingerprint(parsing: text)
        #expect(fingerprint.hash == .sha256)
        #expect(fingerprint.bytes.prefix(3) == [0x6B, 0x8B, 0xF0])
        #expect(fingerprint.description == text)
        #expect(try DTLSFingerprint(parsing: text.lowercased()) == fingerprint)
        #expect(try DTLSFingerprint(parsing: text.uppercased()) == fingerprint)
    }

    @Test("Every accepted hash function is written and read back", arguments: DTLSFingerprint.HashFunction.allCases)
    func allFunctions(hash: DTLSFingerprint.HashFunction) throws {
        let bytes = (0..<hash.byteCount).map { UInt8(truncatingIfNeeded: $0 * 7) }
        let fingerprint = try #require(DTLSFingerprint(hash, bytes: bytes))
        #expect(try DTLSFingerprint(parsing: fingerprint.description) == fingerprint)
        #expect(DTLSFingerprint(hash, bytes: Array(bytes.dropLast())) == nil)
    }

    @Test("A weak or unknown hash function is refused, and the error names it", arguments: ["sha-1", "md5", "sha-999"])
    func weakHash(name: String) throws {
        let error = try #require(throws: DTLSError.self) {
            _ = try DTLSFingerprint(parsing: "\(name) 4A:AD:B9:B1:3F:82:18:3B:54:02:12:DF:3E:5D:49:6B:19:E5:7C:AB")
        }
        #expect(error.code == .unsupportedHash)
        #expect(error.description.contains(name))
    }

    @Test("A fingerprint cut anywhere, or with anything added, is malformed")
    func truncation() throws {
        for length in 8..<text.utf8.count {
            let error = try #require(throws: DTLSError.self) {
                _ = try DTLSFingerprint(parsing: String(text.prefix(length)))
            }
            #expect(error.code == .malformedFingerprint)
        }
        for bad in [text + ":", text + ":00", text + " ", " " + text, text + "\n", "", "sha-256", "sha-256 "] {
            #expect(throws: DTLSError.self) { _ = try DTLSFingerprint(parsing: bad) }
        }
    }

    @Test("Random text is refused and never traps")
    func randomText() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0..<120, using: &generator)).map { _ in
                UInt8.random(in: .min ... .max, using: &generator)
            }
            let noise = String(decoding: bytes, as: UTF8.self)
            #expect(throws: DTLSError.self) { _ = try DTLSFingerprint(parsing: noise) }
            #expect(throws: DTLSError.self) { _ = try DTLSFingerprint(parsing: "sha-256 " + noise) }
        }
    }

    @Test("Fingerprints that differ in one bit, or in their function, are not the same")
    func equality() throws {
        let bytes = [UInt8](repeating: 1, count: 32)
        let fingerprint = try #require(DTLSFingerprint(.sha256, bytes: bytes))
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 0x80
            #expect(DTLSFingerprint(.sha256, bytes: changed) != fingerprint)
        }
        #expect(DTLSFingerprint(.sha512, bytes: bytes + bytes) != fingerprint)
    }

    @Test("Of a description's fingerprints those with weak functions are passed over, unless there are no others")
    func list() throws {
        let weak = "sha-1 4A:AD:B9:B1:3F:82:18:3B:54:02:12:DF:3E:5D:49:6B:19:E5:7C:AB"
        let good = try DTLSFingerprint(parsing: text)
        #expect(try DTLSFingerprint.all(parsing: [weak, text, text]) == [good, good])
        let none = try #require(throws: DTLSError.self) { _ = try DTLSFingerprint.all(parsing: [weak]) }
        #expect(none.code == .unsupportedHash)
        let empty = try #require(throws: DTLSError.self) { _ = try DTLSFingerprint.all(parsing: []) }
        #expect(empty.code == .malformedFingerprint)
        let cut = try #require(throws: DTLSError.self) { _ = try DTLSFingerprint.all(parsing: [text, "sha-256 AB"]) }
        #expect(cut.code == .malformedFingerprint)
    }
}
