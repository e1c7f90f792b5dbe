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

/// A set of telephone numbers: `?` matches any digit, and `*` at the end one or more digits.
public struct NumberPattern: Hashable, Sendable, CustomStringConvertible {
    /// The pattern.
    public let text: String
    private let start: [UInt8]
    private let goesOn: Bool

    /// Takes a text from outside; `nil` if it is no pattern.
    public init?(_ text: String) {
        let goesOn = text.hasSuffix("*")
        let start = goesOn ? text.dropLast() : text[...]
        let digits = start.utf8.first == UInt8(ascii: "+") ? start.utf8.dropFirst() : start.utf8[...]
        guard digits.count <= TelephoneNumber.digits, goesOn || !digits.isEmpty,
            digits.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: "?") })
        else { return nil }
        self.text = text
        self.goesOn = goesOn
        self.start = Array(start.utf8)
    }

    /// The pattern.
    public var description: String { text }

    /// Whether a number is meant.
    public func matches(_ number: TelephoneNumber) -> Bool {
        let digits = number.text.utf8
        guard goesOn ? digits.count > start.count : digits.count == start.count else { return false }
        // A number with a plus and one without are two, also where a pattern begins with `*`.
        if start.isEmpty, digits.first == UInt8(ascii: "+") { return false }
        return zip(start, digits).allSatisfy { mark, digit in
            mark == digit || (mark == UInt8(ascii: "?") && digit != UInt8(ascii: "+"))
        }
    }

    /// How specific the pattern is: the most specific one has priority.
    var weight: (digits: Int, isComplete: Int) {
        (start.count { $0 != UInt8(ascii: "?") }, goesOn ? 0 : 1)
    }
}

/// What belongs to numbers, by patterns. Of several that match, the one with the most digits counts, then the one that gives the
/// number's length, then the first.
public struct NumberTable<Value: Sendable>: Sendable {
    private var entries: [(pattern: NumberPattern, value: Value)] = []

    /// Makes an empty table.
    public init() {}

    /// Whether there is nothing in it.
    public var isEmpty: Bool { entries.isEmpty }

    /// Adds an entry, unless one with that pattern is there.
    ///
    /// - Returns: Whether it was added.
    @discardableResult
    public mutating func add(_ pattern: NumberPattern, _ value: Value) -> Bool {
        guard !entries.contains(where: { $0.pattern == pattern }) else { return false }
        // In the order in which they count.
        let place = entries.firstIndex { $0.pattern.weight < pattern.weight } ?? entries.endIndex
        entries.insert((pattern, value), at: place)
        return true
    }

    /// The value of a number.
    public subscript(number: TelephoneNumber) -> Value? { entries.first { $0.pattern.matches(number) }?.value }
}
