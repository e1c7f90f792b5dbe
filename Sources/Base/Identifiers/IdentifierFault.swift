@_spi(_Unicode) internal import Swift

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
