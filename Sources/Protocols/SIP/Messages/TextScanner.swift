/// Reads a header's value from left to right by the rules of RFC 3261 §25.1. Never reads past the end.
struct TextScanner {
    private let bytes: [UInt8]
    private(set) var index = 0

    init(_ text: String) { bytes = Array(text.utf8) }
    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { index >= bytes.count }
    var peek: UInt8? { index < bytes.count ? bytes[index] : nil }

    /// Skips spaces and tabs; lines have been unfolded before.
    mutating func skipSpace() {
        while index < bytes.count, bytes[index] == 0x20 || bytes[index] == 0x09 { index += 1 }
    }

    /// Takes one byte if it comes next.
    mutating func take(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        index += 1
        return true
    }

    /// Takes a separator with the white space around it (`SEMI`, `EQUAL`, `COMMA`, `SLASH`); if it is not there, nothing.
    mutating func separator(_ byte: UInt8) -> Bool {
        let start = index
        skipSpace()
        guard take(byte) else {
            index = start
            return false
        }
        skipSpace()
        return true
    }

    /// The longest run of bytes that `isWanted`; empty if there is none.
    mutating func run(while isWanted: (UInt8) -> Bool) -> String {
        let start = index
        while index < bytes.count, isWanted(bytes[index]) { index += 1 }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// A token of one character or more.
    mutating func token() -> String? {
        let text = run(while: Self.isToken)
        return text.isEmpty ? nil : text
    }

    /// A quoted string, with its quoted pairs resolved.
    mutating func quotedString() -> String? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        var content: [UInt8] = []
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard index < bytes.count else { return nil }
                content.append(bytes[index])
                index += 1
            default: content.append(byte)
            }
        }
        return nil
    }

    /// The rest of the text.
    mutating func rest() -> String {
        defer { index = bytes.count }
        return String(decoding: bytes[min(index, bytes.count)...], as: UTF8.self)
    }

    /// A whole number of digits only; one too large for the type is the type's largest.
    mutating func number() -> UInt32? {
        let digits = run(while: Self.isDigit)
        guard !digits.isEmpty else { return nil }
        return UInt32(digits) ?? .max
    }

    static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    static func isAlphanumeric(_ byte: UInt8) -> Bool { isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) }

    /// `token` of RFC 3261 §25.1.
    static func isToken(_ byte: UInt8) -> Bool {
        isAlphanumeric(byte) || "-.!%*_+`'~".utf8.contains(byte)
    }

    /// `word` of RFC 3261 §25.1, of which a Call-ID is made; with the `@` between two of them.
    static func isCallID(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F && byte != 0x2C && byte != 0x3B }

    /// Whether `text` is a token.
    static func isToken(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(isToken) }

    /// Splits a list at its commas, but not at those in quoted strings and between angle brackets.
    ///
    /// - Returns: The elements without the space around them, or `nil` if a quotation or bracket does not end, or there are
    ///   more than ``SIPLimits/elements``. Empty elements stay.
    static func elements(of text: String) -> [String]? {
        let bytes = Array(text.utf8)
        var elements: [String] = []
        var (start, index, isQuoted, isBracketed) = (0, 0, false, false)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\\") where isQuoted: index += 1
            case UInt8(ascii: "\"") where !isBracketed: isQuoted.toggle()
            case UInt8(ascii: "<") where !isQuoted: isBracketed = true
            case UInt8(ascii: ">") where !isQuoted: isBracketed = false
            case UInt8(ascii: ",") where !isQuoted && !isBracketed:
                guard elements.count < SIPLimits.elements else { return nil }
                elements.append(trimmed(bytes[start..<index]))
                start = index + 1
            default: break
            }
            index += 1
        }
        guard !isQuoted, !isBracketed, elements.count < SIPLimits.elements else { return nil }
        elements.append(trimmed(bytes[min(start, bytes.count)...]))
        return elements
    }

    static func trimmed(_ bytes: ArraySlice<UInt8>) -> String {
        var bytes = bytes
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes = bytes.dropFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// `text` as a quoted string. Line breaks cannot be quoted and become spaces.
    static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [0x22]
        for byte in text.utf8 {
            switch byte {
            case 0x0A, 0x0D: bytes.append(0x20)
            case 0x22, 0x5C, 0...0x08, 0x0B, 0x0C, 0x0E...0x1F, 0x7F: bytes += [0x5C, byte]
            default: bytes.append(byte)
            }
        }
        bytes.append(0x22)
        return String(decoding: bytes, as: UTF8.self)
    }
}
