/// The versions of a database's tables: each migration makes a version from the one before, once.
///
/// Which of them a file has seen is in its table `grdb_migrations`, whose name is that of the library that once wrote it.
struct SQLiteMigrations {
    private var all: [(name: String, run: (SQLiteConnection) throws -> Void)] = []

    /// Adds the next migration.
    mutating func add(_ name: String, _ run: @escaping (SQLiteConnection) throws -> Void) { all.append((name, run)) }

    /// Adds one that is a script of SQL.
    mutating func add(_ name: String, _ script: String) { add(name) { try $0.execute(script) } }

    /// Whether a database has seen a migration that is not known here: a newer version wrote it.
    func areSuperseded(in database: SQLiteDatabase) throws -> Bool {
        try database.read { connection in !(try seen(by: connection).isSubset(of: all.map(\.name))) }
    }

    /// Runs those that a database has not seen, each in one transaction.
    ///
    /// - Parameter last: The name of the last that is run; nil for all.
    func migrate(_ database: SQLiteDatabase, upTo last: String? = nil) throws {
        try database.write { connection in
            try connection.execute("CREATE TABLE IF NOT EXISTS grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
        }
        let seen = try database.read { try self.seen(by: $0) }
        for (name, run) in all {
            if !seen.contains(name) {
                try database.write { connection in
                    try run(connection)
                    try connection.run("INSERT INTO grdb_migrations (identifier) VALUES (?)", [name])
                }
            }
            if name == last { return }
        }
    }

    private func seen(by connection: SQLiteConnection) throws -> Set<String> {
        guard try connection.hasTable("grdb_migrations") else { return [] }
        return Set(
            try connection.allRows(of: "SELECT identifier FROM grdb_migrations").compactMap { $0.values[0].text })
    }
}
