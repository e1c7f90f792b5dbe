internal import ExchangeCore
import SignalWire

/// One row of a stored table, whichever database it is in. Columns are by their names.
protocol StoredRow {
    /// - Throws: An error if there is no such column, or it is not a text; so do the others.
    func text(_ column: String) throws -> String?
    func integer(_ column: String) throws -> Int64?
    func real(_ column: String) throws -> Double?
    func bool(_ column: String) throws -> Bool?
}

/// A column that must have a value has none.
struct MissingValue: Error { let column: String }

extension StoredRow {
    func decode(_: String?.Type = String?.self, forColumn name: String) throws -> String? { try text(name) }
    func decode(_: Int64?.Type = Int64?.self, forColumn name: String) throws -> Int64? { try integer(name) }
    func decode(_: String.Type = String.self, forColumn name: String) throws -> String { try present(text(name), name) }
    func decode(_: Int64.Type = Int64.self, forColumn name: String) throws -> Int64 { try present(integer(name), name) }
    func decode(_: Double.Type = Double.self, forColumn name: String) throws -> Double { try present(real(name), name) }
    func decode(_: Bool.Type = Bool.self, forColumn name: String) throws -> Bool { try present(bool(name), name) }
    func decode(_: Int.Type = Int.self, forColumn name: String) throws -> Int {
        Int(clamping: try present(integer(name), name))
    }

    private func present<Value>(_ value: Value?, _ column: String) throws -> Value {
        guard let value else { throw MissingValue(column: column) }
        return value
    }
}

/// A value that both databases take.
typealias StoredValue = PostgresValue & SQLiteBindable

/// Answers queries with rows.
protocol RowSource {
    associatedtype Row: StoredRow
    /// - Parameter values: `$1` and those that follow.
    func rows(_ sql: String, _ values: [any StoredValue]) throws -> [Row]

    /// What `make` makes of each row of a table, in the table's order.
    func values<Value>(of table: StoredTable, _ make: (Row) throws -> Value) throws -> [Value]
}

extension RowSource {
    func rows(_ sql: String) throws -> [Row] { try rows(sql, []) }

    func values<Value>(of table: StoredTable, _ make: (Row) throws -> Value) throws -> [Value] {
        try rows(table.query).map(make)
    }
}

extension SQLiteConnection: RowSource {
    func rows(_ sql: String, _ values: [any StoredValue]) throws -> [SQLiteRow] { try allRows(of: sql, values) }
}

extension StoredRow {
    /// The name in a column.
    func identifier<Kind>(_ column: String) throws -> Identifier<Kind> {
        try Identifier(try decode(String.self, forColumn: column))
    }

    /// The name in a column that may be null.
    func optionalIdentifier<Kind>(_ column: String) throws -> Identifier<Kind>? {
        try decode(String?.self, forColumn: column).map { text throws(IdentifierFault) in try Identifier(text) }
    }

    /// Who is in the columns `user`, `guest` and `room`.
    func principal() throws -> Principal {
        let guest = try decode(String.self, forColumn: "guest")
        let room = try decode(String.self, forColumn: "room")
        let kind: Principal.Kind =
            !guest.isEmpty ? .guest(login: guest) : room.isEmpty ? .account : .visitor(try Identifier(room))
        return Principal(user: try identifier("user"), kind: kind)
    }
}

extension Principal {
    /// The value of the column `guest`: the login's digest, or an empty text.
    var guestColumn: String { if case .guest(let login) = kind { login } else { "" } }
    /// The value of the column `room`: the one room of a visitor, or an empty text.
    var roomColumn: String { if case .visitor(let room) = kind { room.text } else { "" } }
}
