/// A value as SQLite stores it (https://sqlite.org/datatype3.html).
enum SQLiteValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])

    /// The text; nil for any other value.
    var text: String? { if case .text(let text) = self { text } else { nil } }
    /// The number; nil for any other value.
    var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
    /// The bytes; nil for any other value.
    var blob: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }
}

/// What can be a statement's value.
protocol SQLiteBindable {
    var sqlite: SQLiteValue { get }
}

extension String: SQLiteBindable { var sqlite: SQLiteValue { .text(self) } }
extension Int64: SQLiteBindable { var sqlite: SQLiteValue { .integer(self) } }
extension Int: SQLiteBindable { var sqlite: SQLiteValue { .integer(Int64(self)) } }
extension Double: SQLiteBindable { var sqlite: SQLiteValue { .real(self) } }
extension Bool: SQLiteBindable { var sqlite: SQLiteValue { .integer(self ? 1 : 0) } }

/// A row of a result, read as a whole.
struct SQLiteRow: Sendable {
    /// The places of its columns, by their names. All rows of a result share it.
    fileprivate let places: [String: Int]
    /// In the order of the columns.
    let values: [SQLiteValue]

    init(places: [String: Int], values: [SQLiteValue]) {
        self.places = places
        self.values = values
    }

    /// - Throws: ``MissingValue`` if there is no such column.
    func value(_ column: String) throws(MissingValue) -> SQLiteValue {
        guard let place = places[column] else { throw MissingValue(column: column) }
        return values[place]
    }
}

extension SQLiteRow: StoredRow {
    /// Earlier versions wrote texts as they were.
    func text(_ column: String) throws -> String? {
        switch try value(column) {
        case .null: nil
        case .text(let text): (try? StoredText.decode(text)) ?? text
        case .integer, .real, .blob: throw MissingValue(column: column)
        }
    }

    func integer(_ column: String) throws -> Int64? {
        switch try value(column) {
        case .null: nil
        case .integer(let number): number
        case .real, .text, .blob: throw MissingValue(column: column)
        }
    }

    func real(_ column: String) throws -> Double? {
        switch try value(column) {
        case .null: nil
        case .real(let number): number
        case .integer(let number): Double(number)
        case .text, .blob: throw MissingValue(column: column)
        }
    }

    func bool(_ column: String) throws -> Bool? { try integer(column).map { $0 != 0 } }
}
