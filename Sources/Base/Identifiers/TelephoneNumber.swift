/// A telephone number as it is dialled: an optional `+`, then 1 to 32 digits.
///
/// `*` and `#` are no part of one: networks take them for orders, such as to forward all calls.
public struct TelephoneNumber: Hashable, Sendable, CustomStringConvertible {
    /// The most digits.
    public static let digits = 32

    /// The number, without spaces or other marks.
    public let text: String

    /// Takes a text from outside; `nil` if it is no number.
    public init?(_ text: String) {
        let digits = text.hasPrefix("+") ? text.utf8.dropFirst() : text.utf8[...]
        guard (1...Self.digits).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        self.text = text
    }

    /// The number.
    public var description: String { text }

    /// Drops `count` characters at the beginning, and prepends `prefix`; `nil` if the result is no number, or may lead
    /// to another country.
    ///
    /// After a prefix was exchanged for another, the rest must not begin with 0: networks take a second 0 for the
    /// beginning of a number abroad, so that `+490…`, which is no German number, would lead to the whole world. The
    /// same applies if a country's code is dropped. A pattern that contains the 0 itself, and drops it, is unambiguous.
    public func rewritten(without count: Int, prepending prefix: String) -> TelephoneNumber? {
        let rest = text.dropFirst(count)
        let isExchanged = count > 0 && (!prefix.isEmpty || text.hasPrefix("+"))
        if isExchanged, rest.hasPrefix("0") { return nil }
        return TelephoneNumber(prefix + rest)
    }
}
