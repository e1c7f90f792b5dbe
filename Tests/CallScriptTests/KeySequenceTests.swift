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

    @Test("Of a sequence that is too long the limit is named, and of others what may be in them")
    func problems() throws {
        let long = try #require(KeySequence.problem(with: String(repeating: "1", count: 201)))
        #expect(long.contains("at most 200") && long.contains("201") && !long.contains("flash"))
        #expect(try #require(KeySequence.problem(with: "1x")).contains("flash"))
        #expect(KeySequence.problem(with: "1,2") == nil)
    }
}
