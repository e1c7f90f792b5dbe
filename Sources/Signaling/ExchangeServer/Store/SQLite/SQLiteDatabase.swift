internal import CSQLite
internal import Synchronization

/// A database of SQLite: one file, one connection, and one thread at a time. Any thread may call, and waits for the disk.
final class SQLiteDatabase: Sendable {
    /// Nil once it is closed.
    private let connection: Mutex<SQLiteConnection?>

    /// - Throws: ``SQLiteFailure``.
    init(path: String, _ mode: SQLiteConnection.Mode = .readWrite) throws {
        connection = Mutex(try SQLiteConnection(path: path, mode))
    }

    /// Gives what `body` reads of one state of the database.
    func read<Value>(_ body: (SQLiteConnection) throws -> Value) throws -> Value {
        try withConnection { connection in try connection.transaction(.read) { try body(connection) } }
    }

    /// Runs `body` in one transaction: all that it changes is kept, or nothing if this throws.
    func write<Value>(_ body: (SQLiteConnection) throws -> Value) throws -> Value {
        try withConnection { connection in try connection.transaction(.write) { try body(connection) } }
    }

    /// Runs `body` without a transaction, as some settings need it.
    func withConnection<Value>(_ body: (SQLiteConnection) throws -> Value) throws -> Value {
        // Values that the lock itself gives would have to be of no other region.
        var value: Value?
        try connection.withLock { connection in
            guard let connection else { throw SQLiteFailure.closed }
            value = try body(connection)
        }
        guard let value else { throw SQLiteFailure.closed }
        return value
    }

    /// Lets go of the file. What comes later fails.
    func close() { connection.withLock { $0 = nil } }
}

extension SQLiteFailure {
    fileprivate static var closed: SQLiteFailure { SQLiteFailure(code: SQLITE_MISUSE, "the database is closed") }
}
