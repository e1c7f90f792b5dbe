import Foundation
import JSON
import Testing

@Suite("JSON values")
struct JSONValueTests {
    @Test(
        "CONN-11: Any value leaves as it came",
        arguments: [
            #"{"a":[1,2.5,-3,true,false,null,"x\u00e9\u2028\"\\"],"b":{"c":{}},"d":[]}"#,
            "[9223372036854775807,-9223372036854775808,18446744073709551615]",
            "[0,1,-1,0.1,1e300]", #""just text""#, "null", "true",
        ])
    func roundTrip(text: String) throws {
        let value = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        let again = try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(value))
        #expect(value == again)
        let left = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed) as? NSObject
        let right = try JSONSerialization.jsonObject(with: JSONEncoder().encode(value), options: .fragmentsAllowed)
        #expect(left == right as? NSObject)
    }

    @Test(
        "Nesting counts brackets outside of strings, and accepts text that is not JSON",
        arguments: [
            ("", 0), ("1", 0), ("[]", 1), (#"{"a":[1,{}],"b":[]}"#, 3), ("[][][]", 1), (#""[[[""#, 0),
            (#"["[[","\"[[",[]]"#, 2), (#"["\"[[]]"#, 1), (#"["\\",[[]]]"#, 3), ("]]][", 0), (#"[""#, 1), ("[[[", 3),
        ])
    func nesting(text: String, depth: Int) {
        #expect(JSONValue.nesting(of: Array(text.utf8)) == depth)
    }

    @Test("Booleans and numbers are not taken for each other")
    func kinds() throws {
        let value = try JSONDecoder().decode(JSONValue.self, from: Data("[1,true,0,false,1.0]".utf8))
        #expect(value == [1, true, 0, false, 1] || value == [1, true, 0, false, 1.0])
        #expect(value != [true, true, false, false, true])
    }

    @Test("The bytes of a value as text are known without writing it")
    func textBytes() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        let exact: [JSONValue] = [
            nil, true, false, 0, -17, .integer(.min), .unsigned(.max), "", "a/b\u{7f}\u{2028}é😀",
            "\"\\\u{8}\t\n\u{c}\r\u{1}",
            [], [1], [1, "x", []], [:], ["a": 1, "\"": ["b": nil]],
        ]
        for value in exact { #expect(try encoder.encode(value).count == value.textBytes, "\(value)") }
        for number in [0, -0.0, 1.5, 1e15, 1e16, 1e300, -1e-300, 0.1, .pi, Double(1 << 53), .greatestFiniteMagnitude] {
            #expect(
                try encoder.encode(JSONValue.number(number)).count <= JSONValue.number(number).textBytes, "\(number)")
        }
    }

    @Test("Members are found by name, and only in objects")
    func members() {
        let value: JSONValue = ["name": "bob", "age": 7]
        #expect(value["name"]?.string == "bob")
        #expect(value["age"]?.integer == 7)
        #expect(value["none"] == nil)
        #expect(JSONValue.string("x")["name"] == nil)
    }
}
