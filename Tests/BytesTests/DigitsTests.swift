import Core
import Testing

@Suite struct DigitsTests {
    @Test("Digits are a number up to the limit")
    func numbers() {
        #expect(Digits.number("0", upTo: 127) == 0 && Digits.number("0127", upTo: 127) == 127)
        #expect(Digits.number("128", upTo: 127) == nil && Digits.number("65535", upTo: UInt16.max) == 65_535)
        #expect(Digits.number("65536", upTo: UInt16.max) == nil)
    }

    @Test(
        "Signs, spaces and other characters are no number", arguments: ["", "+1", "-1", " 1", "1 ", "1.0", "0x1", "٣"])
    func refused(text: String) {
        #expect(Digits.number(text, upTo: 100) == nil)
    }
}
