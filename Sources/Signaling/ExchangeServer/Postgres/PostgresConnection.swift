internal import CPostgres
internal import Core
internal import Glibc

/// What went wrong with a connection to PostgreSQL, or what the server said.
enum PostgresFailure: Error {
    /// libpq cannot be loaded.
    case noLibrary(String)
    /// No connection could be made.
    case unreachable(String)
    /// The connection ended, or did not answer in time; whether the server did what it was sent is not known.
    case lost(String)
    /// The server refused a statement, with its SQLSTATE; nothing since the last end of a transaction was done.
    case refused(state: String, message: String)
}

/// A statement with its values, each as text.
struct PostgresStatement {
    /// With `$1` for the first value. Each different text is prepared once on a connection.
    let sql: String
    let values: [String?]

    init(_ sql: String, _ values: [String?] = []) {
        self.sql = sql
        self.values = values
    }
}

/// One connection to PostgreSQL, over which statements are sent without waiting for the results of those before.
///
/// Calls block for a limited time.
///
/// `@unchecked Sendable`: one thread at a time uses it, that which has the lock of ``PostgresStore``.
@safe
final class PostgresConnection: @unchecked Sendable {
    private let connection: OpaquePointer
    /// The statements that the server has prepared, by their text.
    private var prepared: [String: String] = [:]
    private var isPipelined = false

    /// Connects.
    ///
    /// - Parameters:
    ///   - parameters: libpq's, by their names.
    ///   - limit: How long that may take.
    init(_ parameters: [(name: String, value: String)], within limit: Duration) throws(PostgresFailure) {
        if let fault = unsafe handset_pg_load() { throw .noLibrary(unsafe String(cString: fault)) }
        guard let connection = unsafe Self.start(parameters) else { throw .unreachable("there is no memory") }
        unsafe self.connection = connection
        let deadline = Self.now + limit.nanoseconds
        var next = PollingStatus.writing
        while next != .done {
            guard next != .failed else { throw .unreachable(lastError) }
            let left = Self.milliseconds(until: deadline)
            guard left > 0 else { throw .unreachable("it did not answer within \(limit.text)") }
            let ready = unsafe handset_pg_wait(handset_pg_socket(connection), next == .writing, left)
            guard ready >= 0 else { throw .unreachable(lastError) }
            if ready > 0 {
                next = PollingStatus(rawValue: unsafe handset_pg_continue(connection)) ?? .failed
            }
        }
    }

    deinit { unsafe handset_pg_finish(connection) }

    private enum PollingStatus: Int32 { case failed = 0, reading, writing, done }

    private static func start(_ parameters: [(name: String, value: String)]) -> OpaquePointer? {
        // libpq copies them.
        let names = unsafe parameters.map { unsafe UnsafePointer(strdup($0.name)) }
        let values = unsafe parameters.map { unsafe UnsafePointer(strdup($0.value)) }
        let connection = unsafe handset_pg_start(names + [nil], values + [nil])
        for index in parameters.indices {
            unsafe free(UnsafeMutablePointer(mutating: names[index]))
            unsafe free(UnsafeMutablePointer(mutating: values[index]))
        }
        return unsafe connection
    }

    /// CLOCK_BOOTTIME, in nanoseconds.
    static var now: Int64 { handset_boot_time() }

    /// The server's process as the other end named it: another than the server's own if a pooler is between.
    var backend: Int { Int(unsafe handset_pg_backend(connection)) }
    /// The server's version: 150004 for 15.4.
    var version: Int { Int(unsafe handset_pg_version(connection)) }
    var isOpen: Bool { unsafe handset_pg_is_open(connection) }
    private var lastError: String { Self.line(unsafe String(cString: handset_pg_error(connection))) }

    /// A message in one line.
    private static func line(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: "; ")
    }

    /// Runs statements without values in one transaction; only before the first ``run(_:within:)``.
    func runScript(_ sql: String, within limit: Duration) throws(PostgresFailure) -> PostgresRows {
        precondition(!isPipelined, "scripts come before statements")
        guard unsafe handset_pg_send(connection, sql) else { throw .lost(lastError) }
        let deadline = Self.now + limit.nanoseconds
        var last = PostgresRows()
        var failure: PostgresFailure?
        while let result = try next(before: deadline) {
            switch result {
            case .rows(let rows): last = rows
            case .failed(let error): failure = failure ?? error
            case .done, .synchronized, .skipped: break
            }
        }
        if let failure { throw failure }
        return last
    }

    /// Sends statements together and waits until all are answered. What they change is in one transaction if they begin
    /// and end one.
    ///
    /// - Returns: The rows of each.
    /// - Throws: The first failure; those behind it were not run. The connection is not used any more then, and its end rolls
    ///   back a transaction that was begun.
    func run(_ statements: [PostgresStatement], within limit: Duration) throws(PostgresFailure) -> [PostgresRows] {
        if !isPipelined {
            guard unsafe handset_pg_begin_pipeline(connection) else { throw .lost(lastError) }
            isPipelined = true
        }
        /// For each result that comes, whether it is a statement's.
        var isStatement: [Bool] = []
        for statement in statements {
            if prepared[statement.sql] == nil {
                let name = "s\(prepared.count)"
                guard unsafe handset_pg_prepare(connection, name, statement.sql) else { throw .lost(lastError) }
                prepared[statement.sql] = name
                isStatement.append(false)
            }
            try send(statement)
            isStatement.append(true)
        }
        guard unsafe handset_pg_sync(connection) else { throw .lost(lastError) }
        return try results(of: isStatement, before: Self.now + limit.nanoseconds)
    }

    private func send(_ statement: PostgresStatement) throws(PostgresFailure) {
        var bytes: [UInt8] = []
        var offsets: [Int64] = []
        for value in statement.values {
            offsets.append(value == nil ? -1 : Int64(bytes.count))
            if let value {
                bytes.append(contentsOf: value.utf8)
                bytes.append(0)
            }
        }
        let name = prepared[statement.sql] ?? ""
        guard unsafe handset_pg_execute(connection, name, bytes, offsets, Int32(offsets.count)) else {
            throw .lost(lastError)
        }
    }

    /// Reads what the server answers up to the end of what was sent.
    private func results(of isStatement: [Bool], before deadline: Int64) throws(PostgresFailure) -> [PostgresRows] {
        var all: [PostgresRows] = []
        var failure: PostgresFailure?
        for isStatement in isStatement {
            var rows = PostgresRows()
            while let result = try next(before: deadline) {
                switch result {
                case .rows(let some): rows = some
                case .failed(let error): failure = failure ?? error
                case .done, .synchronized, .skipped: break
                }
            }
            if isStatement { all.append(rows) }
        }
        while true {
            if case .synchronized = try next(before: deadline) { break }
        }
        guard let failure else { return all }
        throw failure
    }

    private enum Result {
        case rows(PostgresRows)
        case done
        case synchronized
        case skipped
        case failed(PostgresFailure)
    }

    /// The next result; `nil` at the end of those of a statement.
    private func next(before deadline: Int64) throws(PostgresFailure) -> Result? {
        while true {
            let unsent = unsafe handset_pg_flush(connection)
            guard unsent >= 0 else { throw .lost(lastError) }
            guard unsafe handset_pg_is_busy(connection) else { break }
            let left = Self.milliseconds(until: deadline)
            guard left > 0 else { throw .lost("the server did not answer in time") }
            let ready = unsafe handset_pg_wait(handset_pg_socket(connection), unsent > 0, left)
            guard ready >= 0 else { throw .lost("its socket failed") }
            guard ready == 0 || (unsafe handset_pg_consume(connection)) else { throw .lost(lastError) }
        }
        guard let result = unsafe handset_pg_next(connection) else {
            guard isOpen else { throw .lost(lastError) }
            return nil
        }
        defer { unsafe handset_pg_clear(result) }
        switch Int(unsafe handset_pg_status(result)) {
        case Int(HANDSET_PG_COMMAND_OK): return .done
        case Int(HANDSET_PG_TUPLES_OK): return .rows(unsafe PostgresRows(result))
        case Int(HANDSET_PG_SYNC): return .synchronized
        case Int(HANDSET_PG_ABORTED): return .skipped
        default:
            guard let state = unsafe handset_pg_state(result), isOpen else { throw .lost(lastError) }
            let message = unsafe handset_pg_message(result).map { unsafe Self.line(String(cString: $0)) }
            let code = unsafe String(cString: state)
            // The server ends the connection: an administrator's command, a shutdown, a crash of another session.
            guard !code.hasPrefix("57P") else { throw .lost(message ?? lastError) }
            return .failed(.refused(state: code, message: message ?? "SQLSTATE \(code)"))
        }
    }

    private static func milliseconds(until deadline: Int64) -> Int32 {
        Int32(clamping: (deadline - now + 999_999) / 1_000_000)
    }
}

/// The rows that a statement gave, as texts.
struct PostgresRows {
    private var columns: [String: Int] = [:]
    private var values: [[String?]] = []

    init() {}

    fileprivate init(_ result: OpaquePointer) {
        let (rows, width) = unsafe (handset_pg_rows(result), handset_pg_columns(result))
        for column in 0..<width {
            guard let name = unsafe handset_pg_column(result, column) else { continue }
            columns[unsafe String(cString: name)] = Int(column)
        }
        values = (0..<rows).map { row in
            (0..<width).map { column in
                guard unsafe !handset_pg_is_null(result, row, column),
                    let text = unsafe handset_pg_value(result, row, column)
                else { return nil }
                return unsafe String(cString: text)
            }
        }
    }

    /// Each of them.
    var all: [PostgresRow] { values.map { PostgresRow(columns: columns, values: $0) } }
    var first: PostgresRow? { values.first.map { PostgresRow(columns: columns, values: $0) } }
}

/// One row of ``PostgresRows``.
struct PostgresRow: StoredRow {
    fileprivate let columns: [String: Int]
    fileprivate let values: [String?]

    func text(_ column: String) throws -> String? { try value(column).map { try StoredText.decode($0) } }
    func integer(_ column: String) throws -> Int64? { try converted(column) { Int64($0) } }
    func real(_ column: String) throws -> Double? { try converted(column) { Double($0) } }
    func bool(_ column: String) throws -> Bool? { try converted(column) { ["t": true, "f": false][$0] } }

    private func value(_ column: String) throws -> String? {
        guard let index = columns[column] else { throw MissingValue(column: column) }
        return values[index]
    }

    private func converted<Value>(_ column: String, _ convert: (String) -> Value?) throws -> Value? {
        guard let text = try value(column) else { return nil }
        guard let value = convert(text) else { throw MissingValue(column: column) }
        return value
    }
}
