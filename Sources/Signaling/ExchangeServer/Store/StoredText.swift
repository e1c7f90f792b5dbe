/// Texts as the databases can store them: PostgreSQL has no U+0000, and to SQLite's C interface a text ends there. Names and reasons of
/// clients may contain it.
///
/// A text with that character, or one that begins as such a text is stored, is stored behind U+E000: with U+E000 and 0 in the place
/// of U+0000, and U+E000 and 1 in the place of U+E000.
enum StoredText {
    private static let mark: Unicode.Scalar = "\u{E000}"

    static func encode(_ text: String) -> String {
        guard text.utf8.contains(0) || text.unicodeScalars.first == mark else { return text }
        var stored = String.UnicodeScalarView([mark])
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\0": stored.append(contentsOf: [mark, "0"])
            case mark: stored.append(contentsOf: [mark, "1"])
            default: stored.append(scalar)
            }
        }
        return String(stored)
    }

    /// - Throws: ``MissingValue`` for a text that ``encode(_:)`` does not make.
    static func decode(_ stored: String) throws -> String {
        guard stored.unicodeScalars.first == mark else { return stored }
        var text = String.UnicodeScalarView()
        var scalars = stored.unicodeScalars.dropFirst().makeIterator()
        while let scalar = scalars.next() {
            guard scalar == mark else {
                text.append(scalar)
                continue
            }
            switch scalars.next() {
            case "0": text.append("\0")
            case "1": text.append(mark)
            default: throw MissingValue(column: "a text")
            }
        }
        return String(text)
    }
}
