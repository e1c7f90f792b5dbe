/// Decimal numbers in text: digits only, where Swift's own reading also takes signs.
public enum Digits {
    /// The number; `nil` if the text is none, or the number is above `limit`.
    public static func number<Number: FixedWidthInteger>(
        _ text: some StringProtocol, upTo limit: Number = .max
    ) -> Number? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }),
            let number = Number(text), number <= limit
        else { return nil }
        return number
    }
}
