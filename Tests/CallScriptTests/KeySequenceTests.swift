import CallScript
import Testing

@Suite("Telephone keys with pauses")
struct KeySequenceTests {
    @Test("Commas are pauses, p and w are waits, and the rest are keys")
    func reads() throws {
        let keys = try #require(KeySequence("1,,2w#p"))
        #expect(keys.elements == [.key("1"), .pause, .pause, .key("2"), .prompt, .key("#"), .sound])
        #expect(keys.listens && keys.text == "1,,2w#p")
        #expect(try !#require(KeySequence("1,,2")).listens)
        #expect(try #require(KeySequence("Ad")).elements == [.key("A"), .key("D")])
    }

    @Test(
        "What is no sequence is refused", arguments: ["", ",,", "w", "1 2", "1x", String(repeating: "1", count: 201)])
    func refuses(text: String) { #expect(KeySequence(text) == nil) }
}
