import SDP
import TestSupport
import Testing

@Suite("Base64")
struct Base64Tests {
    @Test(
        "The vectors of RFC 4648 §10 encode and decode",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ])
    func vectors(plain: String, encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(plain.utf8))
        #expect(Base64.decode(encoded.filter { $0 != "=" }) == Array(plain.utf8))
    }

    @Test("Every length comes back the same")
    func roundTrip() {
        var generator = SeededGenerator(seed: 1)
        for length in 0..<200 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }

    @Test(
        "What is not Base64 is refused", arguments: ["A", "AA=", "AAA==", "AA===", "A A=", "AAA-", "AAAA=", "=", "é=="])
    func refused(text: String) {
        #expect(Base64.decode(text) == nil)
    }
}
