/// JSON text without spaces, with the members of each object in the order of their names' bytes, and slashes as they are.
///
/// `JSONEncoder` writes the same bytes with `.sortedKeys` and `.withoutEscapingSlashes`, and takes many times as long.
package struct JSONText {
    /// The value, or its container, has no such text, or this type does not write it: it holds a number that is not
    /// finite, or is nested too deeply, or names a member twice, or asks its encoder for more than plain containers.
    package struct NotWritable: Error {
        init() {}
    }

    /// Levels of objects and arrays that are written; `JSONEncoder` has about as many.
    static let nesting = 500

    /// The text so far.
    package internal(set) var bytes: [UInt8] = []

    /// Writes a value that may be of any type, as a `JSONEncoder` with its default strategies does.
    ///
    /// It does not support types that such encoders treat specially (`Data`, `Date`, `URL`, `Decimal`).
    ///
    /// - Throws: ``NotWritable``, and what `encode(to:)` throws.
    package init(_ value: some Encodable) throws {
        let encoder = JSONTextEncoder()
        try encoder.write(value)
        bytes = try encoder.finished()
    }

    /// Writes a value.
    ///
    /// - Throws: ``NotWritable``.
    package init(_ value: JSONValue) throws(NotWritable) {
        try write(value, levels: Self.nesting)
    }

    init() {}

    mutating func write(_ value: JSONValue, levels: Int) throws(NotWritable) {
        switch value {
        case .null: writeNull()
        case .bool(let value): write(value)
        case .integer(let value): write(value)
        case .unsigned(let value): write(value)
        case .number(let value): try write(value)
        case .string(let value): write(value)
        case .array(let values):
            guard levels > 0 else { throw NotWritable() }
            bytes.append(UInt8(ascii: "["))
            var isFirst = true
            for value in values {
                if !isFirst { bytes.append(UInt8(ascii: ",")) }
                isFirst = false
                try write(value, levels: levels - 1)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members): try write(members, levels: levels)
        }
    }

    private mutating func write(_ members: [String: JSONValue], levels: Int) throws(NotWritable) {
        guard levels > 0 else { throw NotWritable() }
        bytes.append(UInt8(ascii: "{"))
        var isFirst = true
        for (name, value) in members.sorted(by: { Self.precedes($0.key, $1.key) }) {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            write(name)
            bytes.append(UInt8(ascii: ":"))
            try write(value, levels: levels - 1)
        }
        bytes.append(UInt8(ascii: "}"))
    }

    /// Orders names by their bytes.
    static func precedes(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }

    mutating func writeNull() { bytes += "null".utf8 }
    mutating func write(_ value: Bool) { bytes += (value ? "true" : "false").utf8 }
    mutating func write(_ value: some FixedWidthInteger) { bytes += String(value).utf8 }

    mutating func write(_ value: Double) throws(NotWritable) {
        guard value.isFinite else { throw NotWritable() }
        let text = value.description
        bytes += text.hasSuffix(".0") ? text.utf8.dropLast(2) : text.utf8[...]
    }

    /// Writes a string in quotes (RFC 8259 §7).
    mutating func write(_ string: String) {
        bytes.append(UInt8(ascii: "\""))
        let start = bytes.count
        bytes += string.utf8
        let first = Self.endOfRun(in: bytes, from: start)
        if first < bytes.count { escape(from: first) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Position of the next byte that a string must escape.
    private static func endOfRun(in bytes: [UInt8], from start: Int) -> Int {
        let span = bytes.span
        var index = start
        while index < span.count {
            let byte = span[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { break }
            index += 1
        }
        return index
    }

    /// Writes the text from `first` on again, with escapes.
    private mutating func escape(from first: Int) {
        let rest = Array(bytes[first...])
        bytes.removeSubrange(first...)
        bytes.reserveCapacity(first + rest.count + rest.count / 8 + 16)
        var index = 0
        while index < rest.count {
            bytes.append(UInt8(ascii: "\\"))
            switch rest[index] {
            case 0x08: bytes.append(UInt8(ascii: "b"))
            case 0x09: bytes.append(UInt8(ascii: "t"))
            case 0x0A: bytes.append(UInt8(ascii: "n"))
            case 0x0C: bytes.append(UInt8(ascii: "f"))
            case 0x0D: bytes.append(UInt8(ascii: "r"))
            case let byte where byte < 0x20:
                bytes += (byte < 0x10 ? "u000" : "u00").utf8
                bytes += String(byte, radix: 16).utf8
            case let byte: bytes.append(byte)
            }
            let run = index + 1
            index = Self.endOfRun(in: rest, from: run)
            bytes += rest[run..<index]
        }
    }
}
