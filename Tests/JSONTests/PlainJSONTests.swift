import Foundation
import JSON
import TestSupport
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

private func foundation(_ text: [UInt8]) -> JSONValue? { try? JSONDecoder().decode(JSONValue.self, from: Data(text)) }

/// Random JSON text, not all of it plain.
private struct TextMaker {
    var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &generator)]
    }

    private mutating func space() -> String { pick(["", "", "", "", " ", "\n", "\t\r\n"]) }

    mutating func value(levels: Int = 4) -> String {
        let text =
            switch Int.random(in: 0..<(levels > 0 ? 9 : 6), using: &generator) {
            case 0: pick(["null", "true", "false"])
            case 1, 2: number()
            case 3...5: string()
            case 6: "[\(list { $0.value(levels: levels - 1) })]"
            default: "{\(list { "\($0.string())\($0.space()):\($0.value(levels: levels - 1))" })}"
            }
        return space() + text + space()
    }

    private mutating func list(_ make: (inout TextMaker) -> String) -> String {
        (0..<Int.random(in: 0...4, using: &generator)).map { _ in make(&self) }.joined(separator: ",")
    }

    private mutating func number() -> String {
        let digits = (0..<Int.random(in: 1...20, using: &generator)).map { _ in
            pick(["0", "1", "2", "5", "9"])
        }
        let text = pick(["", "", "-"]) + digits.joined()
        return text + pick(["", "", "", ".0", ".5", ".125", "e3", "E-2", ".", "-1", ".000000000000001"])
    }

    private mutating func string() -> String {
        let parts = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
            pick([
                "a", "Z9", " ", "/", #"\/"#, #"\\"#, #"\""#, #"\b\f\n\r\t"#, #"\u0000"#, #"\u00e9"#, #"\uD83D\uDE00"#,
                #"\ud83d"#, #"\x"#, "é", "e\u{301}", "😀", "\u{7f}", "\u{2028}", "\u{1}", "long enough to be elsewhere",
            ])
        }
        return "\"\(parts.joined())\""
    }

    /// Changes, adds or takes out a byte.
    mutating func damage(_ text: [UInt8]) -> [UInt8] {
        var text = text
        let byte = pick(Array("{}[]\",:\\ue-.0 \n".utf8) + [0, 0xC3, 0xFF])
        let index = Int.random(in: 0..<text.count, using: &generator)
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: text[index] = byte
        case 1: text.insert(byte, at: index)
        default: text.remove(at: index)
        }
        return text
    }
}

@Suite("Plain JSON text")
struct PlainJSONTests {
    @Test("All text that is taken as plain is read as Foundation reads it")
    func sameValue() {
        var maker = TextMaker(seed: 0x91A1)
        var (plain, read) = (0, 0)
        for round in 0..<20_000 {
            var text = bytes(maker.value())
            if round % 2 == 1 { text = maker.damage(text) }
            let expected = foundation(text)
            if expected != nil { read += 1 }
            guard let value = JSONValue(plain: text, nesting: 64) else { continue }
            plain += 1
            #expect(value == expected, "\(String(decoding: text, as: UTF8.self))")
        }
        // Many texts of the maker have something about them that is not plain.
        #expect(plain > read / 3)
    }

    @Test("A text that ends too early is never plain")
    func truncation() {
        let text = bytes(#"{"a":[1,-2.5,true,false,null,{"b":"x\u00e9\n\ud83d\ude00é"}],"c":""}"#)
        #expect(JSONValue(plain: text, nesting: 3) != nil)
        for count in text.indices { #expect(JSONValue(plain: Array(text[..<count]), nesting: 3) == nil) }
    }

    @Test(
        "The usual kinds of text are plain",
        arguments: [
            ("null", .null), (" true ", true), ("0", 0), ("-7", -7), ("999999999999999999", 999_999_999_999_999_999),
            ("2.0", 2), ("-0.5", -0.5), (#""a\/\u0041\t""#, "a/A\t"), ("[]", []), ("{ }", [:]),
            (#"{"é":[1,[2]],"b":{}}"#, ["é": [1, [2]], "b": [:]]),
        ] as [(String, JSONValue)])
    func plain(text: String, value: JSONValue) {
        #expect(JSONValue(plain: bytes(text), nesting: 3).map { $0 == value } == true)
        #expect(foundation(bytes(text)) == value)
    }

    @Test(
        "Text that readers differ about, that loses digits or that is no JSON is not plain",
        arguments: [
            "", " ", "\u{FEFF}1", #"{"a":1,"a":1}"#, "1e2", "-0", "-0.0", "1000000000000000000", "0.123456789012345",
            "01",
            "-", "1.", ".5", "+1", "1.5.5", "1-1", "[1,]", "[,1]", #"{"a":1,}"#, #"{"a"}"#, "{1:1}", "[1}", "1 1",
            "nul",
            "truE", "\"a", #""\x""#, #""\u12g4""#, #""\ud800""#, #""\ud800\u0041""#, #""\udc00""#, "\"\u{1}\"",
            "\"\n\"",
            "[[[1]]]",
        ])
    func notPlain(text: String) {
        #expect(JSONValue(plain: bytes(text), nesting: 2) == nil)
    }

    @Test("Bytes that are no UTF-8 are not plain")
    func notUTF8() {
        for string in [[0xFF], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [UInt8(ascii: "\\"), 0x6E, 0xC3]] as [[UInt8]]
        {
            #expect(JSONValue(plain: bytes("\"") + string + bytes("\""), nesting: 1) == nil)
        }
    }
}

/// Members of all kinds that messages have.
private struct Sample: Codable, Equatable {
    enum Kind: String, Codable { case one, two }
    struct Inner: Codable, Equatable {
        var list: [Kind]
        var numbers: [String: Int]
    }

    var text: String
    var count: UInt16
    var large: UInt64?
    var ratio: Double
    var isSet: Bool
    var kind: Kind?
    var inner: Inner
    var any: JSONValue
    var either: [JSONValue?]
}

@Suite("Messages from and to plain JSON text")
struct PlainMessageTests {
    private static let text = #"""
        {"any":{"b":[1,2.5,null],"a":"\n"},"count":65535,"either":[1,null,"x"],"inner":{"list":["one","two"],"numbers":{"é":1}},
        "isSet":true,"kind":null,"large":1,"ratio":7,"text":"t"}
        """#

    @Test("A message is read as Foundation reads it")
    func reading() throws {
        let plain = try #require(JSONValue(plain: bytes(Self.text), nesting: 8))
        let expected = try JSONDecoder().decode(Sample.self, from: Data(Self.text.utf8))
        #expect(try plain.decoded(as: Sample.self) == expected)
    }

    @Test(
        "A value that is not what the message wants is refused",
        arguments: [
            (#""count":65535"#, #""count":65536"#), (#""count":65535"#, #""count":-1"#),
            (#""count":65535"#, #""count":1.5"#),
            (#""count":65535"#, #""count":"1""#), (#""count":65535,"#, ""), (#""isSet":true"#, #""isSet":1"#),
            (#""ratio":7"#, #""ratio":null"#), (#""text":"t""#, #""text":null"#), (#"["one","two"]"#, #"["three"]"#),
            (#"["one","two"]"#, "{}"), (#"{"é":1}"#, #"{"é":"1"}"#), (#"{"é":1}"#, "[]"),
        ])
    func refusal(part: String, other: String) throws {
        let text = Self.text.replacingOccurrences(of: part, with: other)
        try #require(text != Self.text)
        let plain = try #require(JSONValue(plain: bytes(text), nesting: 8))
        #expect(throws: (any Error).self) { try plain.decoded(as: Sample.self) }
        #expect(throws: (any Error).self) { try JSONDecoder().decode(Sample.self, from: Data(text.utf8)) }
    }

    private static let encoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()

    @Test("A message is written as Foundation writes it, regardless of the order of its members")
    func writing() throws {
        let sample = try JSONDecoder().decode(Sample.self, from: Data(Self.text.utf8))
        #expect(try JSONText(sample).bytes == Array(Self.encoder.encode(sample)))
        #expect(try JSONText([sample, sample]).bytes == Array(Self.encoder.encode([sample, sample])))
        struct Nothing: Encodable {}
        #expect(try JSONText(Nothing()).bytes == bytes("{}"))
        #expect(try JSONText("x").bytes == bytes(#""x""#))
    }

    @Test("Any value is written as Foundation writes it")
    func writingValues() throws {
        var maker = TextMaker(seed: 0x3717)
        for _ in 0..<10_000 {
            guard let value = foundation(bytes(maker.value())) else { continue }
            let expected = try Array(Self.encoder.encode(value))
            #expect(try JSONText(value).bytes == expected)
            #expect(try JSONText(["v": value]).bytes == bytes(#"{"v":"#) + expected + bytes("}"))
        }
        for number in [0, -0.0, 1.5, 1e15, 1e16, 1e300, -1e-300, 5e-324, 0.1, .pi, .greatestFiniteMagnitude] {
            #expect(try JSONText(JSONValue.number(number)).bytes == Array(Self.encoder.encode(number)))
        }
        let control = JSONValue.string(String(String.UnicodeScalarView((0..<0x80).compactMap { Unicode.Scalar($0) })))
        #expect(try JSONText(control).bytes == Array(Self.encoder.encode(control)))
    }

    @Test("A text that would be wrong is not written")
    func notWritable() {
        struct Twice: Encodable {
            enum Key: String, CodingKey { case a, b }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(1, forKey: .b)
                try container.encode(1, forKey: .a)
                try container.encode(2, forKey: .b)
            }
        }
        struct Nested: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Twice.Key.self)
                var list = container.nestedUnkeyedContainer(forKey: .a)
                try list.encode(1)
            }
        }
        struct Silent: Encodable { func encode(to encoder: any Encoder) {} }
        struct Mixed: Encodable {
            func encode(to encoder: any Encoder) throws {
                var list = encoder.unkeyedContainer()
                try list.encode(1)
                _ = encoder.container(keyedBy: Twice.Key.self)
            }
        }
        let deep = (0..<600).reduce(JSONValue.null) { value, _ in [value] }
        #expect(throws: JSONText.NotWritable.self) { try JSONText(Twice()) }
        #expect(throws: JSONText.NotWritable.self) { try JSONText(Nested()) }
        #expect(throws: JSONText.NotWritable.self) { try JSONText(Silent()) }
        #expect(throws: JSONText.NotWritable.self) { try JSONText(Mixed()) }
        #expect(throws: JSONText.NotWritable.self) { try JSONText(deep) }
        #expect(throws: JSONText.NotWritable.self) { try JSONText(JSONValue.number(.nan)) }
        #expect(throws: JSONText.NotWritable.self) { try JSONText(["a": Double.infinity]) }
    }
}
