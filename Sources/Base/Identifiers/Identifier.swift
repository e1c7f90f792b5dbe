// Identifiers: the one form of every name from outside, for client, wire, exchange and database.

@_spi(_Unicode) internal import Swift

/// Limits of an ``Identifier``.
public enum IdentifierLimits {
    /// Bytes of UTF-8.
    public static let bytes = 256
}

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

/// Why a text is no ``Identifier``.
public enum IdentifierFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// It has no character.
    case empty
    /// It has more bytes than ``IdentifierLimits/bytes``.
    case tooLong(bytes: Int)
    /// It has a character that is not seen, or that changes how others are shown.
    case forbidden(Unicode.Scalar)
    /// It begins or ends with a space.
    case outerSpace
    /// It is not in Normalization Form C.
    case notNormalized

    /// What is wrong, to follow the name of a member; it does not contain the text itself.
    public var description: String {
        switch self {
        case .empty: "must not be empty"
        case .tooLong(let bytes): "has \(bytes) bytes; 1 to \(IdentifierLimits.bytes) are allowed"
        case .forbidden(let scalar):
            "has the character U+\(Self.hex(scalar)); control, format, bidirectional and zero-width characters, "
                + "separators of lines, spaces but U+0020, blanks, private and unassigned code points are not allowed"
        case .outerSpace: "begins or ends with a space"
        case .notNormalized: "must be in Unicode Normalization Form C"
        }
    }

    /// What is wrong with a text; `nil` if nothing is.
    init?(in text: String) {
        let bytes = text.utf8.count
        guard bytes > 0 else { self = .empty; return }
        guard bytes <= IdentifierLimits.bytes else { self = .tooLong(bytes: bytes); return }
        if text.utf8.first == 0x20 || text.utf8.last == 0x20 { self = .outerSpace; return }
        // Nearly all names are of these, which are always in Normalization Form C.
        if text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return nil }
        if let scalar = text.unicodeScalars.first(where: { !$0.mayStandInNames }) {
            self = .forbidden(scalar)
            return
        }
        guard text.unicodeScalars.elementsEqual(text._nfc) else { self = .notNormalized; return }
        return nil
    }

    private static func hex(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

extension Unicode.Scalar {
    /// Whether it is visible, and does not change how other characters are shown.
    fileprivate var mayStandInNames: Bool {
        switch properties.generalCategory {
        // The normalization form of what is unassigned may change with a later version of Unicode, and what is private looks as each
        // font has it, or like nothing.
        case .control, .format, .surrogate, .unassigned, .privateUse, .lineSeparator, .paragraphSeparator: false
        case .spaceSeparator: value == 0x20
        default: !properties.isDefaultIgnorableCodePoint && !Self.blanks.contains(value)
        }
    }

    /// What is drawn as nothing, though Unicode counts it among symbols, letters and marks: the blank Braille pattern, the fillers of
    /// Egyptian hieroglyphs and of Khitan, and the note without a head.
    private static let blanks: Set<UInt32> = [0x2800, 0x1_3441, 0x1_3442, 0x1_6FE4, 0x1_D159]
}
