import TestSupport
import Testing
import XML

@Suite("Small XML documents")
struct XMLReaderTests {
    private static let limits = XMLLimits(bytes: 4_096, depth: 4, elements: 16, attributes: 4)

    private func root(_ text: String) throws(XMLFault) -> XMLElement {
        try XMLReader.root(of: Array(text.utf8), within: Self.limits)
    }

    @Test("Elements, attributes, text and lines are as the document has them, with references resolved")
    func document() throws {
        let root = try root(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!-- a comment -->
            <Response>
              <Stream url="wss://a/?x=1&amp;y=2" n='&#228;'>one<b/><![CDATA[<two>]]></Stream>
            </Response>
            """)
        #expect(root.name == "Response" && root.line == 3 && root.children.count == 1)
        let stream = try #require(root.children.first)
        #expect(stream[attribute: "url"] == "wss://a/?x=1&y=2" && stream[attribute: "n"] == "ä")
        #expect(stream[attribute: "other"] == nil)
        #expect(stream.text == "one<two>" && stream.children == [XMLElement("b", line: 4)] && stream.line == 4)
    }

    @Test("UTF-16 and ISO-8859-1 are read as they are declared")
    func encodings() throws {
        let latin = Array(#"<?xml version="1.0" encoding="ISO-8859-1"?><a b=""#.utf8) + [0xE4] + Array(#""/>"#.utf8)
        #expect(try XMLReader.root(of: latin, within: Self.limits)[attribute: "b"] == "ä")
        var wide: [UInt8] = [0xFF, 0xFE]
        for unit in "<a>ä</a>".utf16 { wide += [UInt8(unit & 0xFF), UInt8(unit >> 8)] }
        #expect(try XMLReader.root(of: wide, within: Self.limits).text == "ä")
    }

    @Test(
        "A document type is refused where it begins, regardless of what it declares",
        arguments: [
            "<!DOCTYPE a><a/>",
            "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>",
            "<!DOCTYPE a [<!ENTITY b \"c\"><!ENTITY d \"&b;&b;&b;&b;\">]><a>&d;&d;&d;</a>",
            "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>",
            "<!DOCTYPE a [<!ENTITY % b SYSTEM \"http://127.0.0.1/\"> %b;]><a/>",
        ])
    func documentTypes(text: String) {
        let fault = #expect(throws: XMLFault.self) { try root(text) }
        #expect(fault?.kind == .documentType)
        #expect(fault?.description == "a document type is not allowed here, on line 1")
    }

    @Test("More bytes, depth, elements or attributes than allowed are refused, and as many as allowed are not")
    func limits() throws {
        let sound = [
            "<a><a><a><a/></a></a></a>", "<a>" + String(repeating: "<b/>", count: 15) + "</a>",
            "<a b='' c='' d='' e=''/>", "<a>" + String(repeating: "x", count: 4_089) + "</a>",
        ]
        let excessive = [
            "<a><a><a><a><a/></a></a></a></a>", "<a>" + String(repeating: "<b/>", count: 16) + "</a>",
            "<a b='' c='' d='' e='' f=''/>", "<a>" + String(repeating: "x", count: 4_090) + "</a>",
            String(repeating: "<a>", count: 1_365),
        ]
        for text in sound { #expect(throws: Never.self) { try root(text) } }
        for text in excessive {
            let fault = #expect(throws: XMLFault.self) { try root(text) }
            #expect(fault?.kind == .tooMuch)
        }
    }

    @Test(
        "What is not XML is refused with the line, and the words do not repeat it",
        arguments: [
            "", " ", "secret", "<secret>", "</a>", "<a></b>", "<a b=secret/>", "<a b='' b=''/>", "<a>&secret;</a>",
            "<a/><a/>",
            "<a>\u{1}</a>", "{}", "<a>&#0;</a>", "<?xml version=\"1.0\" encoding=\"secret\"?><a/>",
        ])
    func malformed(text: String) {
        let fault = #expect(throws: XMLFault.self) { try root(text) }
        #expect(fault?.kind == .malformed)
        #expect(fault?.description.contains("secret") == false)
    }

    @Test("A document that is cut off anywhere is refused, and one with changed bytes is refused or another one")
    func damaged() {
        let document = Array(#"<?xml version="1.0"?><a b="c&amp;d"><e>text</e><f g="h"/></a>"#.utf8)
        for length in 0..<document.count {
            #expect(throws: XMLFault.self) {
                try XMLReader.root(of: Array(document.prefix(length)), within: Self.limits)
            }
        }
        var random = SeededGenerator(seed: 11)
        for _ in 0..<5_000 {
            var bytes = document
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if let root = try? XMLReader.root(of: bytes, within: Self.limits) { #expect(!root.name.isEmpty) }
        }
    }
}
