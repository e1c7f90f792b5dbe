internal import CSQLite

/// A prepared statement.
///
/// Only the thread that uses its connection uses it.
@safe
final class SQLiteStatement {
    private let connection: OpaquePointer
    private let statement: OpaquePointer
    /// For each parameter, the place of its value.
    private let valuePlaces: [Int]

    /// - Parameter connection: SQLite's, which lives longer.
    init(_ sql: String, on connection: OpaquePointer) throws(SQLiteFailure) {
        var statement: OpaquePointer?
        let result = unsafe sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard result == SQLITE_OK, let statement = unsafe statement else {
            throw unsafe SQLiteFailure(result, on: connection)
        }
        unsafe (self.connection, self.statement) = (connection, statement)
        valuePlaces = unsafe Self.valuePlaces(of: statement)
    }

    deinit { unsafe sqlite3_finalize(statement) }

    /// Runs it to its end.
    ///
    /// - Parameters:
    ///   - values: Of `?`, in their order, or of `?1` or `$1` and those that follow.
    ///   - body: Is called with each row.
    func run(
        _ values: [(any SQLiteBindable)?], _ body: (SQLiteRow) throws -> Void = { _ in }
    ) throws {
        precondition(values.count == (valuePlaces.max() ?? -1) + 1, "a statement has a value for each parameter")
        defer {
            unsafe sqlite3_reset(statement)
            unsafe sqlite3_clear_bindings(statement)
        }
        for (parameter, place) in valuePlaces.enumerated() {
            try bind(values[place]?.sqlite ?? .null, Int32(parameter + 1))
        }
        guard try step() else { return }
        // Not before: after a change of tables SQLite prepares it again, and `*` may be other columns.
        let columns = unsafe Self.columns(of: statement)
        repeat { try body(row(columns)) } while try step()
    }

    private func bind(_ value: SQLiteValue, _ parameter: Int32) throws(SQLiteFailure) {
        let result =
            switch value {
            case .null: unsafe sqlite3_bind_null(statement, parameter)
            case .integer(let number): unsafe sqlite3_bind_int64(statement, parameter, number)
            case .real(let number): unsafe sqlite3_bind_double(statement, parameter, number)
            case .text(let text):
                unsafe handset_sqlite_bind_text(statement, parameter, text, Int32(clamping: text.utf8.count))
            case .blob: preconditionFailure("no table has blobs")
            }
        guard result == SQLITE_OK else { throw unsafe SQLiteFailure(result, on: connection) }
    }

    /// - Returns: Whether there is another row.
    private func step() throws(SQLiteFailure) -> Bool {
        switch unsafe sqlite3_step(statement) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let result: throw unsafe SQLiteFailure(result, on: connection)
        }
    }

    private func row(_ columns: [String: Int]) -> SQLiteRow {
        let values = unsafe (0..<sqlite3_column_count(statement)).map { column in
            unsafe SQLiteValue(sqlite3_column_value(statement, column))
        }
        return SQLiteRow(places: columns, values: values)
    }

    private static func valuePlaces(of statement: OpaquePointer) -> [Int] {
        (0..<Int(unsafe sqlite3_bind_parameter_count(statement))).map { index in
            // What begins with a dollar sign is a name to SQLite, which numbers names as they come.
            guard let name = unsafe sqlite3_bind_parameter_name(statement, Int32(index + 1)),
                let number = Int(unsafe String(cString: name).dropFirst())
            else { return index }
            return number - 1
        }
    }

    private static func columns(of statement: OpaquePointer) -> [String: Int] {
        let names = unsafe (0..<sqlite3_column_count(statement)).map { column in
            unsafe sqlite3_column_name(statement, column).map { unsafe String(cString: $0) } ?? ""
        }
        return Dictionary(zip(names, names.indices), uniquingKeysWith: { first, _ in first })
    }
}

extension SQLiteValue {
    /// Copies a value of SQLite, which may be of a column or an argument of a function.
    init(_ value: OpaquePointer?) {
        self =
            switch unsafe sqlite3_value_type(value) {
            case SQLITE_INTEGER: .integer(unsafe sqlite3_value_int64(value))
            case SQLITE_FLOAT: .real(unsafe sqlite3_value_double(value))
            case SQLITE_TEXT:
                unsafe .text(String(decoding: Self.bytes(sqlite3_value_text(value), of: value), as: UTF8.self))
            case SQLITE_BLOB: unsafe .blob(Array(Self.bytes(sqlite3_value_blob(value), of: value)))
            default: .null
            }
    }

    /// The count is asked for after the address: asking for that may convert the value.
    private static func bytes(_ begin: UnsafePointer<UInt8>?, of value: OpaquePointer?) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: begin, count: begin == nil ? 0 : Int(sqlite3_value_bytes(value)))
    }

    private static func bytes(_ begin: UnsafeRawPointer?, of value: OpaquePointer?) -> UnsafeBufferPointer<UInt8> {
        unsafe bytes(begin?.assumingMemoryBound(to: UInt8.self), of: value)
    }
}
