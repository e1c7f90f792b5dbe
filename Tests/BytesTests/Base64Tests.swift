import Foundation
import TestSupport
import Testing

import Bytes

@Suite struct Base64Tests {
    @Test("RFC 4648 §10: The test vectors, with padding")
    func vectors() {
        let vectors = [
            "": "", "f": "Zg==", "fo": "Zm8=", "foo": "Zm9v", "foob": "Zm9vYg==", "fooba": "Zm9vYmE=",
            "foobar": "Zm9vYmFy",
        ]
        for (text, encoded) in vectors {
            #expect(Base64.text(Array(text.utf8)) == encoded)
            #expect(Base64.bytes(of: encoded.utf8) == Array(text.utf8))
        }
        #expect(Base64.text([0xFB, 0xFF, 0xFE]) == "+//+")
    }

    @Test(
        "Of several ways to write bytes only one is read",
        arguments: [
            "Zh==", "Zg=", "Zg", "Z", "Z===", "====", "=", "==", "Zm9=", "Zm9vYh==", "-__-", "Zm 9v", "Zm9v\n",
            "Zg==Zg==", "Zm=v",
            "Z=9v", "Zm9vY===", "\u{e9}m9v", "Zm8=\u{0}",
        ])
    func oneWay(text: String) {
        #expect(Base64.bytes(of: text.utf8) == nil)
    }

    @Test("Bytes of any length and value come back, and are written as Foundation writes them")
    func roundTrip() {
        for count in 0..<300 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ count &* 7) }
            #expect(Base64.text(bytes) == Data(bytes).base64EncodedString())
            #expect(Base64.bytes(of: Base64.text(bytes).utf8) == bytes)
        }
    }

    @Test("Any text is read as Foundation reads it, or not at all")
    func random() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<5_000 {
            let letters = Array("AQgwZ+/=9z".utf8)
            let text = (0..<Int.random(in: 0...9, using: &random)).compactMap { _ in
                letters.randomElement(using: &random)
            }
            guard let bytes = Base64.bytes(of: text) else { continue }
            #expect(Data(bytes).base64EncodedString().utf8.elementsEqual(text))
        }
    }
}
