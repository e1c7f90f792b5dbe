import Core
import Testing

@Suite struct HexadecimalTests {
    @Test("Bytes and numbers have two digits for each byte, and come back in either case")
    func roundTrip() {
        let bytes = (0...255).map(UInt8.init)
        let text = Hexadecimal.text(bytes)
        #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff") && text.utf8.count == 512)
        #expect(Hexadecimal.bytes(of: text.utf8) == bytes)
        #expect(Hexadecimal.bytes(of: text.uppercased().utf8) == bytes)
        #expect(
            Hexadecimal.text(of: UInt32(0xA0B)) == "00000a0b" && Hexadecimal.text(of: UInt64.max) == "ffffffffffffffff")
    }

    @Test("Pairs have colons between, and come back")
    func pairs() {
        let bytes: [UInt8] = [0x00, 0xAB, 0x7F]
        #expect(Hexadecimal.pairs(bytes) == "00:AB:7F")
        #expect(Hexadecimal.bytes(ofPairs: "00:ab:7F".utf8) == bytes)
        #expect(Hexadecimal.pairs([]).isEmpty)
    }

    @Test("What is not hexadecimal is refused", arguments: ["0", "0g", "+1", "-1", " 1", "1 ", "é", "000", "0x"])
    func refused(text: String) {
        #expect(Hexadecimal.bytes(of: text.utf8) == nil)
        #expect(Hexadecimal.bytes(ofPairs: "00:\(text)".utf8) == nil)
    }

    @Test("Pairs without a colon, or with one too many, are refused", arguments: ["", "0011", "00:", ":00", "00::11"])
    func noPairs(text: String) {
        #expect(Hexadecimal.bytes(ofPairs: text.utf8) == nil)
    }
}

@Suite struct PercentEscapeTests {
    @Test("Bytes that are not allowed are escaped, and come back")
    func roundTrip() {
        let text = "a b/ü%\u{7F}~"
        let escaped = PercentEscape.escaped(text, allowing: PercentEscape.isUnreserved)
        #expect(escaped == "a%20b%2F%C3%BC%25%7F~")
        #expect(PercentEscape.unescaped(escaped.utf8) == text)
        #expect(PercentEscape.unescaped("%2f%2F".utf8) == "//")
    }

    @Test(
        "Half an escape, and bytes that are not UTF-8, are refused",
        arguments: ["%", "%2", "%2g", "a%+1", "%FF", "%C3"])
    func refused(text: String) {
        #expect(PercentEscape.unescaped(text.utf8) == nil)
    }
}
