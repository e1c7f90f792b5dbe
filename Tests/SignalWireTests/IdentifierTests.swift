import SignalSupport
import Testing

@testable import SignalWire

/// What is wrong with a text, looked at as a name from outside.
private func fault(_ text: String) -> IdentifierFault? {
    do throws(IdentifierFault) {
        _ = try UserID(text)
        return nil
    } catch {
        return error
    }
}

@Suite struct IdentifierTests {
    @Test(
        "A name has 1 to 256 bytes, of any characters",
        arguments: ["a", "é", "字", "🦊"])
    func length(character: String) {
        let bytes = character.utf8.count
        #expect(fault("") == .empty)
        #expect(fault(character) == nil)
        let most = String(repeating: character, count: 256 / bytes)
        let filled = most + String(repeating: "x", count: 256 - most.utf8.count)
        #expect(fault(filled) == nil)
        #expect(fault(filled + "x") == .tooLong(bytes: 257))
        #expect(fault(String(repeating: character, count: 10_000)) == .tooLong(bytes: 10_000 * bytes))
    }

    @Test("Names as people write them are taken as they are")
    func good() throws {
        let names = [
            "alice", "alice@example.org", "+15550100", "kitchen 1", "~!#$%^&*()_+{}|:\"<>?`-=[]\\;',./", "José", "Зоя",
            "张伟", "김민준", "दीपक", "عائشة", "שרה", "นารี", "🦊", "k\u{307}\u{323}".precomposed,
        ]
        for name in names {
            #expect(fault(name) == nil, "\(name)")
            #expect(try UserID(name).text == name)
        }
    }

    @Test("No control, format, bidirectional, zero-width or unassigned character is allowed anywhere in a name")
    func everyForbiddenScalar() {
        var refused = 0
        // All of the planes in which something is assigned, and samples of the others.
        let assigned = Array(0...0x3_23FF as ClosedRange<UInt32>) + Array(0xE_0000...0xE_0FFF)
        for value in assigned + stride(from: 0x3_2400, through: 0x10_FFFF, by: 251) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let properties = scalar.properties
            let isForbidden =
                [.control, .format, .unassigned, .privateUse, .lineSeparator, .paragraphSeparator]
                .contains(properties.generalCategory) || properties.isDefaultIgnorableCodePoint
                || properties.isBidiControl || properties.isNoncharacterCodePoint
                || (properties.isWhitespace && value != 0x20)
                || [0x2800, 0x1_3441, 0x1_3442, 0x1_6FE4, 0x1_D159].contains(value)
            let found = fault("a\(scalar)b")
            if isForbidden {
                refused += 1
                guard found == .forbidden(scalar) else { return #expect(Bool(false), "U+\(value) is taken") }
            } else if found != nil, found != .notNormalized {
                return #expect(Bool(false), "U+\(value) is refused as \(String(describing: found))")
            }
        }
        #expect(refused > 10_000)
    }

    @Test(
        "The characters that people cannot see are refused by name",
        arguments: [
            "\0", "\t", "\n", "\u{1B}", "\u{7F}", "\u{85}", "\u{AD}", "\u{34F}", "\u{61C}", "\u{115F}", "\u{180B}",
            "\u{180E}", "\u{200B}", "\u{200C}", "\u{200D}", "\u{200E}", "\u{200F}", "\u{2028}", "\u{2029}", "\u{202A}",
            "\u{202E}", "\u{2060}", "\u{2066}", "\u{2069}", "\u{3164}", "\u{FE0F}", "\u{FEFF}", "\u{FFA0}", "\u{FFF9}",
            "\u{FFFE}", "\u{A0}", "\u{1680}", "\u{2007}", "\u{202F}", "\u{205F}", "\u{2800}", "\u{3000}", "\u{E000}",
            "\u{F8FF}", "\u{13441}", "\u{16FE4}", "\u{1D159}", "\u{F0000}", "\u{10FFFD}", "\u{E0001}", "\u{E0041}",
            "\u{E0100}", "\u{10FFFF}",
        ] as [Unicode.Scalar])
    func unseen(scalar: Unicode.Scalar) throws {
        for text in ["\(scalar)", "class-7\(scalar)", "\(scalar)class-7", "class-7\(scalar)x"] {
            let found = try #require(fault(text))
            #expect(found == .forbidden(scalar))
            let hex = String(scalar.value, radix: 16, uppercase: true)
            #expect("\(found)".contains(hex))
        }
    }

    @Test(
        "A space is within a name, and neither first nor last",
        arguments: [" alice", "alice ", " ", "  ", " José", "José "])
    func outerSpaces(text: String) throws {
        #expect(fault(text) == .outerSpace)
        #expect("\(try #require(fault(text)))" == "begins or ends with a space")
    }

    @Test("Texts that Swift takes as equal are one name at most: only Normalization Form C is taken")
    func normalization() {
        let decomposed = [
            "e\u{301}", "a\u{323}\u{302}", "\u{1112}\u{1161}\u{11AB}", "\u{212B}", "\u{2126}", "\u{F900}",
        ]
        for text in decomposed {
            #expect(fault(text) == .notNormalized)
            #expect(fault("x\(text)y") == .notNormalized)
            #expect(fault(text.precomposed) == nil)
        }
        // Marks in another order than the canonical one.
        #expect(fault("q\u{307}\u{323}") == .notNormalized && fault("q\u{323}\u{307}") == nil)
    }

    @Test("Of generated texts those that are taken are equal, and hash equally, exactly when their bytes are")
    func equality() {
        var generator = Numbers(state: 7)
        let alphabet: [Unicode.Scalar] = [
            "a", "e", "q", "\u{E9}", "\u{301}", "\u{323}", "\u{307}", "\u{212B}", "\u{C5}", "\u{1100}", "\u{1161}",
            "\u{11A8}", "\u{AC00}", "\u{AC01}", "\u{F900}", "\u{8C48}", "\u{0}", "\u{200D}", " ",
        ]
        var taken: [UserID] = []
        for _ in 0..<20_000 {
            let count = Int(generator.next() % 5)
            let scalars = (0..<count).map { _ in alphabet[Int(generator.next() % UInt64(alphabet.count))] }
            let text = String(String.UnicodeScalarView(scalars))
            if let name = try? UserID(text) { taken.append(name) }
        }
        #expect(taken.count > 1_000)
        var byBytes: [[UInt8]: UserID] = [:]
        for name in taken { byBytes[Array(name.text.utf8)] = name }
        #expect(Set(taken).count == byBytes.count)
        let sorted = Set(taken).sorted()
        #expect(zip(sorted, sorted.dropFirst()).allSatisfy { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) })
    }

    @Test("A request with a bad name is refused as invalidParams, with its place, and not with its text")
    func atTheDoor() throws {
        let cases: [(method: String, params: String, member: String)] = [
            ("group.create", #"{"group":"class-7\u0000x"}"#, "group"),
            ("group.create", #"{"members":["bob","ca\u202Erol"]}"#, "members.[1]"),
            ("invite.send", #"{"to":"b\u200Bob","ttl":1,"idempotency_key":"k"}"#, "to"),
            ("invite.send", #"{"to":["bob",""],"ttl":1,"idempotency_key":"k"}"#, "to.[1]"),
            ("invite.send", #"{"to":"bob","ttl":1,"idempotency_key":"e\u0301"}"#, "idempotency_key"),
            ("room.join", #"{"room":"lob\u0007by"}"#, "room"),
            ("room.signal", #"{"room":"lobby","type":"t","to":"c\u2028"}"#, "to"),
            ("call.end", #"{"invite":"\uFEFF","reason":"completed","duration_ms":1}"#, "invite"),
            ("session.start", #"{"token":"t","device":{"id":"d\u0000","name":"n","capabilities":[]}}"#, "device.id"),
            (
                "session.start", #"{"token":"t","device":{"id":"d","name":"n","capabilities":["a\u0085"]}}"#,
                "device.capabilities.[0]"
            ),
            (
                "session.start",
                #"{"token":"t","device":{"id":"d","name":"n","capabilities":[]},"resume":{"session":"\u2066","after":1}}"#,
                "resume.session"
            ),
            (
                "device.register",
                #"{"device":{"id":"d","name":"n","capabilities":[]},"push":[{"kind":"ap\u0000ns","token":"t"}]}"#,
                "push.[0].kind"
            ),
        ]
        for (method, params, member) in cases {
            let text = #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#
            let message = try RPCMessage(decoding: Array(text.utf8))
            let error = #expect(throws: RPCError.self) { _ = try ClientRequest(method: method, in: message) }
            #expect(error?.known == .invalidParams)
            #expect(error?.message.contains("params.\(member) ") == true, "\(error?.message ?? "none")")
            #expect(error?.message.contains("class") == false)
        }
    }
}

/// The same numbers each time (Knuth's multiplier; the high bits are the good ones).
private struct Numbers {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 33
    }
}

extension String {
    /// In Normalization Form C, by a way of its own: what a hash table takes as equal and has that form.
    fileprivate var precomposed: String {
        let known = ["é", "ậ", "한", "Å", "Ω", "豈", "\u{1E33}\u{307}"]
        return known.first { $0 == self } ?? self
    }
}
