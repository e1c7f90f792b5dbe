/// Bytes and numbers as hexadecimal digits.
public enum Hexadecimal {
    /// Two digits for each byte, in lower case.
    public static func text(_ bytes: some Sequence<UInt8>) -> String {
        var digits: [UInt8] = []
        digits.reserveCapacity(2 * bytes.underestimatedCount)
        for byte in bytes { digits += [digit(byte >> 4, UInt8(ascii: "a")), digit(byte & 15, UInt8(ascii: "a"))] }
        return String(decoding: digits, as: UTF8.self)
    }

    /// All digits of a number, zeros in front included, in lower case.
    public static func text(of number: some FixedWidthInteger & UnsignedInteger) -> String {
        text(stride(from: number.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) })
    }

    /// The bytes of two digits each, in either case; `nil` for anything else.
    public static func bytes(of text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        var high: UInt8?
        for character in text {
            guard let value = value(of: character) else { return nil }
            if let upper = high { bytes.append(upper << 4 | value) }
            high = high == nil ? value : nil
        }
        return bytes
    }

    /// Two digits for each byte, in upper case, with colons between (RFC 8122 §5).
    public static func pairs(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: Array(bytes.map(pair).joined(separator: CollectionOfOne(UInt8(ascii: ":")))), as: UTF8.self)
    }

    /// The bytes of ``pairs(_:)``, in either case; `nil` for anything else.
    public static func bytes(ofPairs text: some Collection<UInt8>) -> [UInt8]? {
        let pairs = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard pairs.allSatisfy({ $0.count == 2 }) else { return nil }
        return bytes(of: Array(pairs.joined()))
    }

    /// The value of a digit, in either case; `nil` if it is none.
    public static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    fileprivate static func pair(_ byte: UInt8) -> [UInt8] {
        [digit(byte >> 4, UInt8(ascii: "A")), digit(byte & 15, UInt8(ascii: "A"))]
    }

    private static func digit(_ value: UInt8, _ ten: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : ten + value - 10
    }
}

/// Bytes of text that an address may not contain, as `%` and two hexadecimal digits (RFC 3986 §2.1).
public enum PercentEscape {
    /// The text with all bytes escaped but those that are allowed.
    public static func escaped(_ text: String, allowing isAllowed: (UInt8) -> Bool) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 { if isAllowed(byte) { bytes.append(byte) } else { bytes += escape(byte) } }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The escape of one byte, in upper case.
    public static func escape(_ byte: UInt8) -> [UInt8] { [UInt8(ascii: "%")] + Hexadecimal.pair(byte) }

    /// The text with its escapes resolved; `nil` if one is malformed, or the result is not UTF-8.
    public static func unescaped(_ text: some Collection<UInt8>) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var rest = text[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let value = Hexadecimal.bytes(of: rest.prefix(2)), let resolved = value.first else { return nil }
            bytes.append(resolved)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Letters, digits and `-._~`, which no address needs to escape (RFC 3986 §2.3).
    public static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
