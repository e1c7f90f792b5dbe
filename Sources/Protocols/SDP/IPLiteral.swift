/// An IP address in text, checked; names are none.
struct IPLiteral: Equatable {
    /// Four bytes, or sixteen.
    let bytes: [UInt8]

    var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }
    /// IPv4 224.0.0.0/4 or IPv6 ff00::/8.
    var isMulticast: Bool { bytes.count == 4 ? bytes[0] >> 4 == 14 : bytes[0] == 0xFF }

    init?(_ text: some StringProtocol) {
        guard let bytes = text.utf8.contains(UInt8(ascii: ":")) ? Self.six(text) : Self.four(text) else { return nil }
        self.bytes = bytes
    }

    private static func four(_ text: some StringProtocol) -> [UInt8]? {
        let fields = text.split(separator: ".", omittingEmptySubsequences: false)
        guard fields.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for field in fields {
            guard field.utf8.count <= 3, let byte = Decimal.parse(field, upTo: 255) else { return nil }
            bytes.append(UInt8(byte))
        }
        return bytes
    }

    /// RFC 4291 §2.2, without zone.
    private static func six(_ text: some StringProtocol) -> [UInt8]? {
        guard text.utf8.count <= 45 else { return nil }
        var head: [UInt8] = []
        var tail: [UInt8]?
        var fields = text.split(separator: ":", omittingEmptySubsequences: false)[...]
        // A leading or trailing "::" shows as two empty fields; one of them is taken away here.
        if fields.first == "" {
            guard fields.dropFirst().first == "" else { return nil }
            fields = fields.dropFirst()
        }
        if fields.last == "" {
            guard fields.dropLast().last == "" else { return nil }
            fields = fields.dropLast()
        }
        for (position, field) in zip(fields.indices, fields) {
            if field == "" {
                guard tail == nil else { return nil }
                tail = []
                continue
            }
            let isLast = position == fields.index(before: fields.endIndex)
            guard let bytes = isLast ? four(field) ?? group(field) : group(field) else { return nil }
            if tail == nil { head += bytes } else { tail?.append(contentsOf: bytes) }
        }
        guard let tail else { return head.count == 16 ? head : nil }
        let missing = 16 - head.count - tail.count
        return missing >= 2 ? head + [UInt8](repeating: 0, count: missing) + tail : nil
    }

    private static func group(_ field: some StringProtocol) -> [UInt8]? {
        guard (1...4).contains(field.utf8.count), field.utf8.first != UInt8(ascii: "+"),
            let value = UInt16(field, radix: 16)
        else { return nil }
        return [UInt8(value >> 8), UInt8(value & 0xFF)]
    }
}
