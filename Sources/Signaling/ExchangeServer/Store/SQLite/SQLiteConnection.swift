internal import CSQLite

/// What SQLite refused, or what went wrong in it.
struct SQLiteFailure: Error {
    /// The kind of failure, such as `SQLITE_FULL`.
    let code: Int32
    /// The kind in detail.
    private let extendedCode: Int32
    let message: String

    init(code: Int32, _ message: String) {
        (self.code, extendedCode, self.message) = (code & 0xFF, code, message)
    }

    /// Whether the file was deleted or moved since it was opened: `SQLITE_READONLY_DBMOVED`.
    var isMoved: Bool { extendedCode == SQLITE_READONLY | 4 << 8 }

    /// - Parameters:
    ///   - result: What a function returned.
    ///   - connection: SQLite's, which says what happened; nil if there was no memory for one.
    init(_ result: Int32, on connection: OpaquePointer?) {
        let message = unsafe connection.flatMap { unsafe sqlite3_errmsg($0) } ?? sqlite3_errstr(result)
        self.init(code: result, unsafe message.map { unsafe String(cString: $0) } ?? "SQLite says \(result)")
    }
}

/// A function that SQL statements can call. For the same arguments it always gives the same result.
struct SQLiteFunction: Sendable {
    let name: String
    let arguments: Int32
    /// - Returns: A text or null.
    let body: @Sendable ([SQLiteValue]) -> String?

    init(_ name: String, arguments: Int32, _ body: @escaping @Sendable ([SQLiteValue]) -> String?) {
        (self.name, self.arguments, self.body) = (name, arguments, body)
    }
}

/// One connection to a database of SQLite. Statements are prepared once.
///
/// `@unchecked Sendable`: one thread at a time uses it, that which has the lock of ``SQLiteDatabase``.
@safe
final class SQLiteConnection: @unchecked Sendable {
    enum Mode {
        /// For reading and writing; a file that is not there is made.
        case readWrite
        /// For reading; the file must be there.
        case readOnly
    }

    /// How long a statement waits for another process that has locked the database, in milliseconds.
    private static let patience: Int32 = 5_000

    private let connection: OpaquePointer
    private var statements: [String: SQLiteStatement] = [:]
    /// What SQLite has counted, while it counts.
    private let frames = FrameCount()

    init(path: String, _ mode: Mode) throws(SQLiteFailure) {
        let flags =
            switch mode {
            case .readWrite: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            case .readOnly: SQLITE_OPEN_READONLY
            }
        var connection: OpaquePointer?
        let result = unsafe sqlite3_open_v2(path, &connection, flags | SQLITE_OPEN_NOMUTEX, nil)
        guard result == SQLITE_OK, let connection = unsafe connection else {
            let failure = unsafe SQLiteFailure(result, on: connection)
            unsafe sqlite3_close(connection)
            throw failure
        }
        unsafe self.connection = connection
        unsafe sqlite3_extended_result_codes(connection, 1)
        unsafe sqlite3_busy_timeout(connection, Self.patience)
        _ = unsafe handset_sqlite_refuse_double_quoted_texts(connection)
    }

    deinit {
        statements.removeAll()
        unsafe sqlite3_close(connection)
    }

    /// Has closing leave the log as it is, for the next process to read.
    func keepLogWhenClosing() { _ = unsafe handset_sqlite_keep_log(connection) }

    /// Counts the log's frames from now on, and leaves it to ``checkpoint()`` to copy them back.
    func countLogFrames() {
        // The count lives as long as the connection, which calls this in commits alone.
        _ = unsafe sqlite3_wal_hook(
            connection,
            { context, _, _, count in
                guard let context = unsafe context else { return SQLITE_OK }
                unsafe Unmanaged<FrameCount>.fromOpaque(context).takeUnretainedValue().count = Int(count)
                return SQLITE_OK
            }, unsafe Unmanaged.passUnretained(frames).toOpaque())
    }

    /// Frames in the log behind the last commit; 0 before the first one since ``countLogFrames()``.
    var logFrames: Int { frames.count }

    /// Copies the log back into the file, as far as no reader needs it.
    func checkpoint() { _ = unsafe sqlite3_wal_checkpoint_v2(connection, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil) }

    /// How many rows the last statement changed.
    var changedRows: Int { Int(unsafe sqlite3_changes64(connection)) }
    /// The number of the row that was inserted last.
    var lastInsertedRow: Int64 { unsafe sqlite3_last_insert_rowid(connection) }

    /// Runs any number of statements, which have no values.
    func execute(_ script: String) throws(SQLiteFailure) {
        let result = unsafe sqlite3_exec(connection, script, nil, nil, nil)
        guard result == SQLITE_OK else { throw unsafe SQLiteFailure(result, on: connection) }
    }

    /// Runs a statement with values.
    func run(_ sql: String, _ values: [(any SQLiteBindable)?] = []) throws { try statement(sql).run(values) }

    /// Gives a statement's rows to `body`, one after another.
    func forEachRow(
        of sql: String, _ values: [(any SQLiteBindable)?] = [], _ body: (SQLiteRow) throws -> Void
    ) throws {
        try statement(sql).run(values, body)
    }

    /// All rows of a statement.
    func allRows(of sql: String, _ values: [(any SQLiteBindable)?] = []) throws -> [SQLiteRow] {
        var rows: [SQLiteRow] = []
        try forEachRow(of: sql, values) { rows.append($0) }
        return rows
    }

    /// The first value of the first row of a statement; null if there is no row.
    func firstValue(of sql: String, _ values: [(any SQLiteBindable)?] = []) throws -> SQLiteValue {
        try allRows(of: sql, values).first?.values.first ?? .null
    }

    func hasTable(_ name: String) throws -> Bool {
        try firstValue(of: "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [name]) != .null
    }

    /// The names of a table's columns, in their order.
    func columns(in table: String) throws -> [String] {
        try allRows(of: "SELECT name FROM pragma_table_info(?)", [table]).compactMap { try $0.text("name") }
    }

    /// Runs `body` in one transaction: all that it changes is kept, or nothing if it throws or its end fails.
    func transaction<Value>(_ kind: Transaction, _ body: () throws -> Value) throws -> Value {
        try execute(kind.rawValue)
        do {
            let value = try body()
            try execute("COMMIT")
            return value
        } catch {
            // Some failures have rolled back already.
            if unsafe sqlite3_get_autocommit(connection) == 0 { try? execute("ROLLBACK") }
            throw error
        }
    }

    enum Transaction: String {
        /// Reads one state of the database, also while others write.
        case read = "BEGIN DEFERRED"
        /// Has the right to write from its beginning.
        case write = "BEGIN IMMEDIATE"
    }

    /// Runs `body`, whose statements can call some functions.
    func with<Value>(_ functions: [SQLiteFunction], _ body: () throws -> Value) throws -> Value {
        for function in functions { try add(function) }
        defer { for function in functions { remove(function) } }
        return try body()
    }

    private func add(_ function: SQLiteFunction) throws(SQLiteFailure) {
        // SQLite releases it with the function, also if this fails.
        let box = unsafe Unmanaged.passRetained(FunctionBox(function.body)).toOpaque()
        let result = unsafe sqlite3_create_function_v2(
            connection, function.name, function.arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC, box,
            { unsafe FunctionBox.call($0, $1, $2) }, nil, nil,
            { box in unsafe box.map { unsafe Unmanaged<FunctionBox>.fromOpaque($0).release() } })
        guard result == SQLITE_OK else { throw unsafe SQLiteFailure(result, on: connection) }
    }

    private func remove(_ function: SQLiteFunction) {
        // A prepared statement that calls it would be prepared again, and fail.
        statements.removeAll()
        _ = unsafe sqlite3_create_function_v2(
            connection, function.name, function.arguments, SQLITE_UTF8, nil, nil, nil, nil, nil)
    }

    private func statement(_ sql: String) throws(SQLiteFailure) -> SQLiteStatement {
        if let statement = statements[sql] { return statement }
        let statement = unsafe try SQLiteStatement(sql, on: connection)
        statements[sql] = statement
        return statement
    }
}

/// How many frames the log has.
private final class FrameCount { var count = 0 }

/// What SQLite has of a function.
private final class FunctionBox {
    private let body: ([SQLiteValue]) -> String?

    init(_ body: @escaping ([SQLiteValue]) -> String?) { self.body = body }

    static func call(
        _ context: OpaquePointer?, _ count: Int32, _ arguments: UnsafeMutablePointer<OpaquePointer?>?
    ) {
        guard let box = unsafe sqlite3_user_data(context) else { return }
        let values = unsafe UnsafeBufferPointer(start: arguments, count: Int(count)).map { unsafe SQLiteValue($0) }
        guard let text = unsafe Unmanaged<FunctionBox>.fromOpaque(box).takeUnretainedValue().body(values) else {
            return unsafe sqlite3_result_null(context)
        }
        unsafe handset_sqlite_result_text(context, text, Int32(clamping: text.utf8.count))
    }
}
