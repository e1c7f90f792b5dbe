import Foundation
import Testing

import Core

@Suite struct Base64URLTests {
    @Test("RFC 4648 §10: The test vectors, in the alphabet for URLs and without padding")
    func vectors() {
        let vectors = [
            "": "", "f": "Zg", "fo": "Zm8", "foo": "Zm9v", "foob": "Zm9vYg", "fooba": "Zm9vYmE", "foobar": "Zm9vYmFy",
            "\u{3fb}\u{3ff}": "z7vPvw",
        ]
        for (text, encoded) in vectors {
            #expect(Base64URL.text(Array(text.utf8)) == encoded)
            #expect(Base64URL.bytes(of: encoded.utf8) == Array(text.utf8))
        }
        #expect(Base64URL.text([0xFB, 0xFF, 0xFE]) == "-__-")
        #expect(Base64URL.bytes(of: "-__-".utf8) == [0xFB, 0xFF, 0xFE])
    }

    @Test(
        "Of several ways to write bytes only one is read",
        arguments: ["Zh", "Zm9", "Z", "Zg==", "Zm9vYh", "+//+", "Z g", "Zg\n"])
    func oneWay(text: String) {
        #expect(Base64URL.bytes(of: text.utf8) == nil)
    }

    @Test("Bytes of any length and value come back")
    func roundTrip() {
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ count &* 7) }
            #expect(Base64URL.bytes(of: Base64URL.text(bytes).utf8) == bytes)
        }
    }
}
