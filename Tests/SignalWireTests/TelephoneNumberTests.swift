import SignalWire
import TestSupport
import Testing

@Suite struct TelephoneNumberTests {
    @Test(
        "A number is an optional plus and 1 to 32 digits",
        arguments: [
            ("1", true), ("+1", true), ("0049301234", true), ("", false), ("+", false), ("1+", false), ("++1", false),
            ("1 2", false), ("1-2", false), ("*1", false), ("1#", false), ("１２", false), ("1\u{301}", false),
            (String(repeating: "1", count: 32), true), (String(repeating: "1", count: 33), false),
        ])
    func numbers(text: String, isOne: Bool) { #expect((TelephoneNumber(text) != nil) == isOne) }

    @Test(
        "A pattern has digits, ? and a * at the end",
        arguments: [
            ("2??", true), ("+49*", true), ("*", true), ("+*", true), ("112", true), ("+", false), ("", false),
            ("4*9", false), ("4**", false), ("4+9", false), ("a", false), ("?", true),
        ])
    func patterns(text: String, isOne: Bool) { #expect((NumberPattern(text) != nil) == isOne) }

    @Test(
        "? is one digit, and * one or more",
        arguments: [
            ("2??", "201", true), ("2??", "20", false), ("2??", "2011", false), ("+49*", "+49", false),
            ("+49*", "+491", true), ("49*", "+491", false), ("?*", "+491", false), ("*", "+491", false),
            ("*", "4", true), ("+*", "+4", true), ("+?", "+4", true), ("??", "+4", false),
        ])
    func matches(pattern: String, number: String, isMeant: Bool) throws {
        let pattern = try #require(NumberPattern(pattern))
        #expect(pattern.matches(try #require(TelephoneNumber(number))) == isMeant)
    }

    @Test("The pattern with the most digits counts, then the one that gives the length, regardless of their order")
    func table() throws {
        let entries = ["*", "00*", "0049*", "0049900*", "0049?", "00491", "2??", "20?", "2*"]
        let expected = [
            ("5", "*"), ("001", "00*"), ("0049", "00*"), ("0049301", "0049*"), ("0049900", "0049*"),
            ("00499001", "0049900*"), ("00492", "0049?"), ("00491", "00491"), ("201", "20?"), ("211", "2??"),
            ("2111", "2*"),
        ]
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<50 {
            var table = NumberTable<String>()
            for entry in entries.shuffled(using: &generator) {
                #expect(table.add(try #require(NumberPattern(entry)), entry))
                #expect(!table.add(try #require(NumberPattern(entry)), "twice"))
            }
            for (number, entry) in expected { #expect(table[try #require(TelephoneNumber(number))] == entry) }
            #expect(table[try #require(TelephoneNumber("+1"))] == nil)
        }
    }

    @Test("A number is dialled with other digits at its beginning, if what comes out is one")
    func rewriting() throws {
        let number = try #require(TelephoneNumber("+49301"))
        #expect(number.rewritten(without: 3, prepending: "0")?.text == "0301")
        #expect(number.rewritten(without: 6, prepending: "")?.text == nil)
        #expect(number.rewritten(without: 0, prepending: "0") == nil)
        #expect(number.rewritten(without: 1, prepending: "00")?.text == "0049301")
    }

    @Test(
        "A national number that begins with 0 is not made of an international one: it would lead abroad",
        arguments: [
            ("+490442071234567", 3, "0", nil), ("+4900442071234567", 3, "", nil), ("+490", 3, "0", nil),
            ("00442071234567", 1, "+49", nil), ("90301", 1, "0", nil), ("+49442071", 3, "0", "0442071"),
            // An outside line, and numbers that are put together, are as dialled.
            ("90301", 1, "", "0301"), ("0301", 0, "0", "00301"),
            // Italian numbers have the 0: the pattern says so, and a second one is refused.
            ("+390612345", 4, "0", "0612345"), ("+3900442071", 4, "0", nil), ("+39347123", 3, "", "347123"),
            ("+390612345", 3, "", nil),
        ] as [(String, Int, String, String?)])
    func rewritingAbroad(dialled: String, strip: Int, prepend: String, rewritten: String?) throws {
        let number = try #require(TelephoneNumber(dialled))
        #expect(number.rewritten(without: strip, prepending: prepend)?.text == rewritten)
    }
}
