// JSON: any JSON value, held so that it is written as it was read, and fast conversion from and to JSON text.

/// Any JSON value (RFC 8259), for payloads that pass through without being understood.
///
/// Whole numbers keep all their digits as far as 64 bits reach; other numbers are doubles, as in JavaScript.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])
}

extension JSONValue: Codable {
    /// Reads the next value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(UInt64.self) {
            self = .unsigned(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// Writes the value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .unsigned(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

extension JSONValue {
    /// The member called `key`, if this is an object that has one.
    public subscript(key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members[key]
    }

    /// The text, if this is a string.
    public var string: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    /// The value as a whole number, if it is one that fits.
    public var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .number(let value): Int64(exactly: value)
        case .null, .bool, .unsigned, .string, .array, .object: nil
        }
    }
}

extension JSONValue {
    /// Bytes of the value as JSON text without spaces; an upper bound, and exact except for numbers that are not whole.
    ///
    /// - Complexity: O(bytes); nothing is written.
    public var textBytes: Int {
        switch self {
        case .null: 4
        case .bool(let value): value ? 4 : 5
        case .integer(let value): String(value).utf8.count
        case .unsigned(let value): String(value).utf8.count
        case .number(let value): max(value.description.utf8.count, 2)
        case .string(let value): Self.textBytes(of: value)
        case .array(let values): values.reduce(2 + max(0, values.count - 1)) { $0 + $1.textBytes }
        case .object(let members):
            members.reduce(2 + max(0, members.count - 1)) { $0 + Self.textBytes(of: $1.key) + 1 + $1.value.textBytes }
        }
    }

    /// Bytes of a string in quotes: control characters as `\u001f` or shorter, quotes and backslashes as two (RFC 8259
    /// §7).
    private static func textBytes(of text: String) -> Int {
        text.utf8.reduce(2) { count, byte in
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x08, 0x09, 0x0A, 0x0C, 0x0D: count + 2
            case ..<0x20: count + 6
            default: count + 1
            }
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Makes a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Makes a whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Makes `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Makes a number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Makes `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Makes an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Makes an object; of two members with one name the later counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, later in later }))
    }
}

extension JSONValue {
    /// The nesting depth of brackets outside of strings; an upper bound if the text is not JSON.
    ///
    /// JSON parsers recurse, so text from outside is checked before it is parsed. This function does not recurse.
    public static func nesting(of text: [UInt8]) -> Int {
        let (quote, backslash) = (0x22 as UInt8, 0x5C as UInt8)
        let (openingBracket, openingBrace) = (0x5B as UInt8, 0x7B as UInt8)
        let (closingBracket, closingBrace) = (0x5D as UInt8, 0x7D as UInt8)
        var (depth, deepest) = (0, 0)
        var isInString = false
        var index = 0
        while index < text.count {
            let byte = text[index]
            index += 1
            if isInString {
                if byte == quote { isInString = false }
                if byte == backslash { index += 1 }
            } else if byte == quote {
                isInString = true
            } else if byte == openingBracket || byte == openingBrace {
                depth += 1
                if depth > deepest { deepest = depth }
            } else if byte == closingBracket || byte == closingBrace {
                depth -= 1
            }
        }
        return deepest
    }
}
