/// Bytes as text: base64 with padding (RFC 4648 §4).
public enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    fileprivate static let padding = UInt8(ascii: "=")
    private static let values = Sextets.values(of: alphabet)

    /// Writes bytes.
    public static func text(_ bytes: [UInt8]) -> String { Sextets.text(bytes, alphabet, padding: padding) }

    /// The bytes that `text` encodes, if it is in the one canonical form, with padding (RFC 4648 §3.5); else `nil`.
    ///
    /// - Complexity: O(characters).
    public static func bytes(of text: some Sequence<UInt8>) -> [UInt8]? {
        let values = values
        let characters = Array(text)
        guard characters.count.isMultiple(of: 4) else { return nil }
        guard let last = characters.last else { return [] }
        let paddings = last != padding ? 0 : characters[characters.count - 2] != padding ? 1 : 2
        let count = characters.count - paddings
        var bytes: [UInt8] = []
        bytes.reserveCapacity(characters.count / 4 * 3)
        var index = 0
        while index + 4 <= count {
            let (first, second) = (values[Int(characters[index])], values[Int(characters[index + 1])])
            let (third, fourth) = (values[Int(characters[index + 2])], values[Int(characters[index + 3])])
            guard (first | second | third | fourth) < 64 else { return nil }
            bytes.append(first << 2 | second >> 4)
            bytes.append(second << 4 | third >> 2)
            bytes.append(third << 6 | fourth)
            index += 4
        }
        guard index < count else { return bytes }
        // Two or three characters are left. What they have beyond whole bytes must be zeros.
        let (first, second) = (values[Int(characters[index])], values[Int(characters[index + 1])])
        let third = count - index == 3 ? values[Int(characters[index + 2])] : 0
        guard (first | second | third) < 64 else { return nil }
        bytes.append(first << 2 | second >> 4)
        guard count - index == 3 else { return second & 0x0F == 0 ? bytes : nil }
        bytes.append(second << 4 | third >> 2)
        return third & 0x03 == 0 ? bytes : nil
    }

    /// The bytes that `text` encodes: padding may be left out, as some peers do, and unused bits need not be zero; `nil`
    /// for anything else that is not base64.
    ///
    /// - Complexity: O(characters).
    public static func unpaddedBytes(of text: some Sequence<UInt8>) -> [UInt8]? {
        let characters = Array(text)
        if let bytes = bytes(of: characters) { return bytes }
        let count = characters.count
        let paddings = characters.suffix(2).reversed().prefix { $0 == padding }.count
        guard paddings == 0 || count.isMultiple(of: 4) else { return nil }
        let values = values
        return Sextets.bytes(characters.prefix(count - paddings).lazy.map { values[Int($0)] })?.bytes
    }

    /// The bytes that `text` encodes, as encoders of other languages write it: in the alphabet of §4 or that of §5 (`-`
    /// and `_`), with or without padding, in lines (RFC 2045 §6.8) or with spaces; `nil` if there are other characters,
    /// or a single character is left at the end.
    ///
    /// - Complexity: O(characters).
    public static func lenientBytes(of text: some Sequence<UInt8>) -> [UInt8]? {
        var characters = Array(text)
        // Most encoders write the one form, which is read without looking at each character.
        if let bytes = bytes(of: characters) { return bytes }
        characters.removeAll { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0A }
        let paddings = characters.reversed().prefix { $0 == padding }.count
        guard paddings <= 2 else { return nil }
        let values = values
        let sextets = characters.dropLast(paddings).lazy.map { character -> UInt8 in
            switch character {
            case UInt8(ascii: "-"): 62
            case UInt8(ascii: "_"): 63
            default: values[Int(character)]
            }
        }
        return Sextets.bytes(sextets)?.bytes
    }
}

/// Bytes as text for URLs: base64url without padding (RFC 4648 §5).
public enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values = Sextets.values(of: alphabet)

    /// Writes bytes.
    public static func text(_ bytes: [UInt8]) -> String { Sextets.text(bytes, alphabet, padding: nil) }

    /// The bytes that `text` encodes, if it is their canonical encoding (RFC 4648 §3.5, RFC 7515 §2); else `nil`.
    public static func bytes(of text: some Sequence<UInt8>) -> [UInt8]? {
        let values = values
        guard let read = Sextets.bytes(text.lazy.map { values[Int($0)] }), read.rest == 0 else { return nil }
        return read.bytes
    }
}

/// Six bits for each character.
private enum Sextets {
    /// The value of each character; of those that are none it has the two upper bits.
    static func values(of alphabet: [UInt8]) -> [UInt8] {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }

    static func text(_ bytes: [UInt8], _ alphabet: [UInt8], padding: UInt8?) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let rest = bytes.count - index
            let (first, second) = (bytes[index], rest > 1 ? bytes[index + 1] : 0)
            let third = rest > 2 ? bytes[index + 2] : 0
            text.append(alphabet[Int(first >> 2)])
            text.append(alphabet[Int((first & 0x03) << 4 | second >> 4)])
            if rest > 1 { text.append(alphabet[Int((second & 0x0F) << 2 | third >> 6)]) }
            if rest > 2 { text.append(alphabet[Int(third & 0x3F)]) }
            if let padding, rest < 3 { text += [UInt8](repeating: padding, count: 3 - rest) }
            index += 3
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The whole bytes, and the bits that are left; nil if a value is none, or a single one is left.
    static func bytes(_ values: some Sequence<UInt8>) -> (bytes: [UInt8], rest: UInt32)? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.underestimatedCount * 3 / 4)
        var (bits, count) = (UInt32(0), 0)
        for value in values {
            guard value < 64 else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
        return count < 6 ? (bytes, bits & (1 << UInt32(count) - 1)) : nil
    }
}
