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
