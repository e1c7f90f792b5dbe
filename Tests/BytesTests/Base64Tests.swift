import Foundation
import TestSupport
import Testing

import Core

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

    @Test("Padding may be left out, and unused bits be set, as peers write keys")
    func unpadded() {
        for count in 0..<200 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ count &* 7) }
            let text = Base64.text(bytes)
            #expect(Base64.unpaddedBytes(of: text.utf8) == bytes)
            #expect(Base64.unpaddedBytes(of: text.utf8.filter { $0 != UInt8(ascii: "=") }) == bytes)
        }
        #expect(
            Base64.unpaddedBytes(of: "Zh==".utf8) == [0x66] && Base64.unpaddedBytes(of: "Zm9".utf8) == [0x66, 0x6F])
    }

    @Test(
        "Without padding, too, what is not Base64 is refused",
        arguments: [
            "A", "AA=", "AAA==", "AA===", "A A=", "AAA-", "AAAA=", "=", "==", "====", "é==", "Zg==Zg==", "Zm=v",
            "Zm9v\n",
        ])
    func unpaddedRefused(text: String) {
        #expect(Base64.unpaddedBytes(of: text.utf8) == nil)
    }

    @Test("Base64 is also read in the URL alphabet, without padding, in lines and with spaces")
    func lenient() {
        let forms = [
            "-__-": [0xFB, 0xFF, 0xFE], "-/_+": [0xFB, 0xFF, 0xFE], "Zg": [0x66], "Zm8": [0x66, 0x6F],
            "Zm9v\r\nYmFy\r\n": Array("foobar".utf8), "Zm9v\nYg==\n": Array("foob".utf8), " Z m\t8 = ": [0x66, 0x6F],
            "Zm9v\nYg": Array("foob".utf8), "Zg=": [0x66], "Zg=\n=": [0x66], "": [], "\n": [], "==": [], "Zh==": [0x66],
        ]
        for (text, bytes) in forms { #expect(Base64.lenientBytes(of: text.utf8) == bytes, "\(text)") }
    }

    @Test(
        "What is in no form of Base64 is not read leniently, either",
        arguments: [
            "Z", "Z===", "Zm9vY", "Zg===", "====", "Zm=v", "Zg==Zg==", "Zm9v.", "\u{e9}m9v", "Zm8=\u{0}", "Zm9v,YmFy",
        ])
    func noForm(text: String) {
        #expect(Base64.lenientBytes(of: text.utf8) == nil)
    }

    @Test("Bytes come back from each form, with any line ends, and nothing traps at any cut")
    func formsRoundTrip() {
        for count in 0..<200 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ count &* 7) }
            let text = Base64.text(bytes)
            var lines = ""
            for (index, character) in text.enumerated() {
                if index > 0, index % 76 == 0 { lines += "\n" }
                lines.append(character)
            }
            let bare = text.filter { $0 != "=" }
            for form in [text, lines, bare, Base64URL.text(bytes), lines.filter { $0 != "=" }] {
                #expect(Base64.lenientBytes(of: form.utf8) == bytes)
                let cut = Base64.lenientBytes(of: form.utf8.prefix(form.utf8.count / 2))
                #expect(cut.map(bytes.starts(with:)) ?? true)
            }
        }
    }
}
