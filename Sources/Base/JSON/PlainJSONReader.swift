extension JSONValue {
    /// Reads plain JSON text, as nearly all JSON text is (RFC 8259).
    ///
    /// Plain text is UTF-8 without a byte order mark. No name comes twice in an object. Whole numbers have up to 18 digits,
    /// and numbers with a decimal point up to 15; none has an exponent, and none is a negative zero. Every reader makes
    /// the same value of such text, and this one is many times faster than one that a `Decoder` drives.
    ///
    /// - Parameters:
    ///   - text: Any bytes; nothing in them can trap.
    ///   - nesting: Objects and arrays within each other, at most. The reader recurses as deeply.
    /// - Returns: `nil` for any other text, JSON or not; use another reader for those.
    /// - Complexity: O(bytes).
    package init?(plain text: [UInt8], nesting: Int) {
        var reader = PlainJSONReader(text, nesting: nesting)
        guard let value = try? reader.document() else { return nil }
        self = value
    }
}

/// Reads plain JSON text in one pass.
private struct PlainJSONReader {
    /// The text is none of the plain kind.
    private struct NotPlain: Error {}

    // Computed, since a stored one would be looked at through a lock for each byte.
    private static var quote: UInt8 { UInt8(ascii: "\"") }
    private static var backslash: UInt8 { UInt8(ascii: "\\") }
    private static var comma: UInt8 { UInt8(ascii: ",") }
    private static var colon: UInt8 { UInt8(ascii: ":") }
    private static var closingBracket: UInt8 { UInt8(ascii: "]") }
    private static var closingBrace: UInt8 { UInt8(ascii: "}") }

    private let text: [UInt8]
    private var index = 0
    /// Levels that may still be opened.
    private var levels: Int

    init(_ text: [UInt8], nesting: Int) {
        self.text = text
        levels = nesting
    }

    /// Reads all of the text.
    mutating func document() throws -> JSONValue {
        let value = try value(after: try nextMark())
        while index < text.count {
            guard Self.isSpace(text[index]) else { throw NotPlain() }
            index += 1
        }
        return value
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }

    /// The next byte that is no space; it is not passed over.
    private mutating func nextMark() throws(NotPlain) -> UInt8 {
        while index < text.count {
            let byte = text[index]
            guard Self.isSpace(byte) else { return byte }
            index += 1
        }
        throw NotPlain()
    }

    /// Reads the value that begins with `first`, which is the next byte.
    private mutating func value(after first: UInt8) throws(NotPlain) -> JSONValue {
        switch first {
        case Self.quote: return .string(try string())
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws(NotPlain) -> JSONValue {
        let end = index + word.utf8.count
        guard end <= text.count, text[index..<end].elementsEqual(word.utf8) else { throw NotPlain() }
        index = end
        return value
    }

    // MARK: - Objects and arrays

    private mutating func array() throws(NotPlain) -> JSONValue {
        try enter()
        var values: [JSONValue] = []
        var mark = try nextMark()
        guard mark != Self.closingBracket else { return leave(.array(values)) }
        while true {
            values.append(try value(after: mark))
            mark = try nextMark()
            guard mark == Self.comma else { break }
            index += 1
            mark = try nextMark()
        }
        guard mark == Self.closingBracket else { throw NotPlain() }
        return leave(.array(values))
    }

    private mutating func object() throws(NotPlain) -> JSONValue {
        try enter()
        var members: [String: JSONValue] = [:]
        var mark = try nextMark()
        guard mark != Self.closingBrace else { return leave(.object(members)) }
        while true {
            guard mark == Self.quote else { throw NotPlain() }
            let name = try string()
            guard try nextMark() == Self.colon else { throw NotPlain() }
            index += 1
            let value = try value(after: try nextMark())
            // Readers differ in which of two counts.
            if case .some = members.updateValue(value, forKey: name) { throw NotPlain() }
            mark = try nextMark()
            guard mark == Self.comma else { break }
            index += 1
            mark = try nextMark()
        }
        guard mark == Self.closingBrace else { throw NotPlain() }
        return leave(.object(members))
    }

    private mutating func enter() throws(NotPlain) {
        guard levels > 0 else { throw NotPlain() }
        levels -= 1
        index += 1
    }

    private mutating func leave(_ value: JSONValue) -> JSONValue {
        levels += 1
        index += 1
        return value
    }

    // MARK: - Numbers

    private mutating func number() throws(NotPlain) -> JSONValue {
        let start = index
        let isNegative = text[index] == UInt8(ascii: "-")
        if isNegative { index += 1 }
        let first = index
        var magnitude: Int64 = 0
        while index < text.count, let digit = Self.digit(text[index]) {
            guard index - first < 18 else { throw NotPlain() }
            magnitude = magnitude * 10 + digit
            index += 1
        }
        let digits = index - first
        guard digits > 0, digits == 1 || text[first] != UInt8(ascii: "0") else { throw NotPlain() }
        guard index < text.count else { return try whole(magnitude, isNegative) }
        switch text[index] {
        case UInt8(ascii: "."): return try fraction(from: start, digits)
        case UInt8(ascii: "e"), UInt8(ascii: "E"), UInt8(ascii: "+"), UInt8(ascii: "-"): throw NotPlain()
        default: return try whole(magnitude, isNegative)
        }
    }

    private func whole(_ magnitude: Int64, _ isNegative: Bool) throws(NotPlain) -> JSONValue {
        guard isNegative else { return .integer(magnitude) }
        guard magnitude != 0 else { throw NotPlain() }
        return .integer(-magnitude)
    }

    /// Continues at the decimal point of a number that began at `start`. With so few digits nothing is lost; an
    /// integral value is returned as an integer.
    private mutating func fraction(from start: Int, _ digitsBefore: Int) throws(NotPlain) -> JSONValue {
        index += 1
        let first = index
        while index < text.count, Self.digit(text[index]) != nil { index += 1 }
        let digits = index - first
        guard digits > 0, digitsBefore + digits <= 15 else { throw NotPlain() }
        if index < text.count {
            switch text[index] {
            case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"), UInt8(ascii: "+"), UInt8(ascii: "-"):
                throw NotPlain()
            default: break
            }
        }
        guard let number = Double(String(decoding: text[start..<index], as: UTF8.self)),
            number != 0 || text[start] != UInt8(ascii: "-")
        else { throw NotPlain() }
        return Int64(exactly: number).map(JSONValue.integer) ?? .number(number)
    }

    private static func digit(_ byte: UInt8) -> Int64? {
        let digit = byte &- UInt8(ascii: "0")
        return digit <= 9 ? Int64(digit) : nil
    }

    // MARK: - Strings

    private mutating func string() throws(NotPlain) -> String {
        let start = index + 1
        index = endOfRun(from: start)
        guard index < text.count else { throw NotPlain() }
        if text[index] == Self.backslash { return try escapedString(from: start) }
        guard text[index] == Self.quote else { throw NotPlain() }
        let string = try Self.checked(text[start..<index])
        index += 1
        return string
    }

    /// Position of the next byte that is not literal in a string: a quote, a backslash or a control character.
    private func endOfRun(from start: Int) -> Int {
        let span = text.span
        var index = start
        while index < span.count {
            let byte = span[index]
            if byte == Self.quote || byte == Self.backslash || byte < 0x20 { break }
            index += 1
        }
        return index
    }

    /// Reads on at the first backslash of a string that began at `start`.
    private mutating func escapedString(from start: Int) throws(NotPlain) -> String {
        var bytes: [UInt8] = []
        var run = start
        while index < text.count {
            bytes += text[run..<index]
            if text[index] == Self.quote {
                index += 1
                return try Self.checked(bytes[...])
            }
            guard text[index] == Self.backslash else { throw NotPlain() }
            try escape(into: &bytes)
            run = index
            index = endOfRun(from: run)
        }
        throw NotPlain()
    }

    private static func checked(_ bytes: ArraySlice<UInt8>) throws(NotPlain) -> String {
        guard let string = String(validating: bytes, as: UTF8.self) else { throw NotPlain() }
        return string
    }

    /// Reads one escape sequence (RFC 8259 §7).
    private mutating func escape(into bytes: inout [UInt8]) throws(NotPlain) {
        guard index + 1 < text.count else { throw NotPlain() }
        let kind = text[index + 1]
        index += 2
        switch kind {
        case Self.quote, Self.backslash, UInt8(ascii: "/"): bytes.append(kind)
        case UInt8(ascii: "b"): bytes.append(0x08)
        case UInt8(ascii: "f"): bytes.append(0x0C)
        case UInt8(ascii: "n"): bytes.append(0x0A)
        case UInt8(ascii: "r"): bytes.append(0x0D)
        case UInt8(ascii: "t"): bytes.append(0x09)
        case UInt8(ascii: "u"): bytes += String(Character(try escapedScalar())).utf8
        default: throw NotPlain()
        }
    }

    /// Reads four digits, and four more if the first are one half of a pair.
    private mutating func escapedScalar() throws(NotPlain) -> Unicode.Scalar {
        let unit = try codeUnit()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard UTF16.isLeadSurrogate(unit), index + 1 < text.count, text[index] == Self.backslash,
            text[index + 1] == UInt8(ascii: "u")
        else { throw NotPlain() }
        index += 2
        let second = try codeUnit()
        guard UTF16.isTrailSurrogate(second) else { throw NotPlain() }
        return UTF16.decode(UTF16.EncodedScalar([unit, second]))
    }

    private mutating func codeUnit() throws(NotPlain) -> UInt16 {
        guard index + 4 <= text.count else { throw NotPlain() }
        var unit: UInt16 = 0
        for byte in text[index..<index + 4] {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "A") + 10)
            default: throw NotPlain()
            }
        }
        index += 4
        return unit
    }
}
