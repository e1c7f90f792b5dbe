internal import ExchangeCore
import SignalWire

/// Rows of one table that this version cannot use: an earlier one wrote them, or they are damaged.
///
/// They are kept unchanged in the table `set_aside`, for people to look at; no code reads them.
public struct SetAsideRows: Hashable, Sendable {
    /// The table that they were in.
    public let table: String
    /// How many there are.
    public let count: Int
    /// What is wrong with the first of them.
    public let reason: String

    /// Those that are there, by their tables.
    static func all(_ connection: SQLiteConnection) throws -> [SetAsideRows] {
        guard try connection.hasTable("set_aside") else { return [] }
        let sql = "SELECT table_name, count(*) AS count, min(id), reason FROM set_aside GROUP BY table_name ORDER BY 1"
        return try connection.allRows(of: sql).map { row in
            SetAsideRows(
                table: try row.decode(forColumn: "table_name"), count: try row.decode(forColumn: "count"),
                reason: try row.decode(forColumn: "reason"))
        }
    }

    // MARK: - Setting aside

    /// Columns with JSON that the exchange passes on as text, without a look at what it says.
    private static let passedOn = [("invites", ["data", "payload", "timeout_payload"]), ("pushes", ["payload"])]

    /// Sets aside the rows with text that would break the messages that it is put into.
    static func add(_ connection: SQLiteConnection) throws {
        try connection.with([shown]) { for (table, columns) in passedOn { try add(connection, table, columns) } }
    }

    private static func add(_ connection: SQLiteConnection, _ table: String, _ columns: [String]) throws {
        let faults = columns.map { "WHEN \($0) IS NOT NULL AND NOT json_valid(\($0)) THEN '\($0) is no JSON'" }
        let fault = "CASE \(faults.joined(separator: " ")) END"
        guard try copy(from: table, fault, connection) > 0 else { return }
        try connection.run("DELETE FROM \(table) WHERE \(fault) IS NOT NULL")
    }

    /// Copies the rows for which an expression is not null: its value names the fault.
    ///
    /// - Returns: The number of copied rows.
    static func copy(from table: String, _ fault: String, _ connection: SQLiteConnection) throws -> Int {
        let shown = try connection.columns(in: table).map { column in
            "'\(column)', CASE typeof(\(column)) WHEN 'text' THEN shown(CAST(\(column) AS BLOB)) ELSE \(column) END"
        }
        try connection.run(
            """
            INSERT INTO set_aside (table_name, reason, content)
            SELECT '\(table)', \(fault), json_object(\(shown.joined(separator: ", "))) FROM \(table)
            WHERE \(fault) IS NOT NULL
            """)
        return connection.changedRows
    }

    /// Bytes as text that people can look at: what is not seen, or is no text, by its number.
    static let shown = SQLiteFunction("shown", arguments: 1) { arguments in
        guard let bytes = arguments[0].blob else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            return bytes.map { "\\x" + String($0, radix: 16) }.joined()
        }
        return text.unicodeScalars.map { scalar in
            (try? Identifier<Never>(String(scalar))) == nil
                ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
        }.joined()
    }
}
