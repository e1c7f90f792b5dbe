/// A name from outside, or one that is compared with such: of a user, a device, a room, a key.
///
/// It has 1 to ``IdentifierLimits/bytes`` bytes of UTF-8 in Normalization Form C (Unicode Standard Annex #15), and no
/// character that is not seen or that changes how others are shown: no control and no format characters, which are
/// those that set the direction of text and those without a width, no separators of lines, no space but U+0020 and none
/// at its ends, nothing that may be left out when text is shown (Default_Ignorable_Code_Point) or is drawn as nothing,
/// and no code point that is private or that Unicode has not assigned yet. A holder of one need not check it again, and
/// the compiler refuses one kind where another is expected.
///
/// Equal names have equal bytes, wherever they are compared: Swift takes texts as equal that differ in their
/// normalization form alone, and so do its hash tables, but SQLite, files and other languages compare bytes. A name in
/// another form is refused and not rewritten, because its sender looks for it as it was sent, in answers, in events and
/// in what it has signed.
@frozen
public struct Identifier<Kind>: Sendable {
    /// The name.
    public let text: String

    /// Takes a text from outside.
    ///
    /// - Complexity: O(bytes), and no more than ``IdentifierLimits/bytes`` of them.
    public init(_ text: String) throws(IdentifierFault) {
        if let fault = IdentifierFault(in: text) { throw fault }
        self.text = text
    }

    /// Takes a text that this program has made.
    public init(ours text: String) {
        if let fault = IdentifierFault(in: text) { preconditionFailure("a name that the program makes \(fault)") }
        self.text = text
    }
}

extension Identifier: Hashable, Comparable {
    /// Compares bytes: in Normalization Form C canonical equivalence is no more than that.
    @inlinable
    public static func == (left: Self, right: Self) -> Bool { left.text == right.text }

    /// Hashes the text.
    @inlinable
    public func hash(into hasher: inout Hasher) { hasher.combine(text) }

    /// Orders by bytes.
    @inlinable
    public static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}

extension Identifier: CustomStringConvertible {
    /// The name; fit for a log and a terminal.
    public var description: String { text }
}

extension Identifier: ExpressibleByStringLiteral {
    /// A literal in the program's source.
    public init(stringLiteral text: String) { self.init(ours: text) }
}

extension Identifier: Codable {
    /// Reads a string.
    ///
    /// - Throws: `DecodingError.dataCorrupted` with the ``IdentifierFault`` beneath.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        do throws(IdentifierFault) {
            try self.init(text)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: container.codingPath, debugDescription: "no identifier", underlyingError: error))
        }
    }

    /// Writes a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
