/// Decimal numbers in text: digits only, where Swift's own reading also takes signs.
enum Decimal {
    /// The number, or `nil` if it is none or above `limit`.
    static func parse(_ text: some StringProtocol, upTo limit: UInt64) -> UInt64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }),
            let number = UInt64(text), number <= limit
        else { return nil }
        return number
    }

    /// ``parse(_:upTo:)`` for numbers that are counted with.
    static func integer(_ text: some StringProtocol, upTo limit: Int) -> Int? {
        parse(text, upTo: UInt64(max(0, limit))).map { Int($0) }
    }
}
