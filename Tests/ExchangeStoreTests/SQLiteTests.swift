@testable import ExchangeServer
import Testing

/// The binding to SQLite by itself.
@Suite struct SQLiteTests {
    private struct Stop: Error {}

    /// A new database with one table, `things (name, number, size)`.
    private func withDatabase<Value>(_ body: (SQLiteDatabase, String) throws -> Value) throws -> Value {
        let folder = try Folder()
        let database = try SQLiteDatabase(path: folder.database)
        defer { database.close() }
        try database.write {
            try $0.execute(
                "CREATE TABLE things (name TEXT, number INTEGER, size REAL); CREATE TABLE others (id INTEGER);")
        }
        return try body(database, folder.database)
    }

    private func names(_ database: SQLiteDatabase) throws -> [String?] {
        try database.read { try $0.allRows(of: "SELECT name FROM things ORDER BY rowid").map { try $0.text("name") } }
    }

    @Test("Values of each kind come back as they were, a text with its zero bytes")
    func values() throws {
        try withDatabase { database, _ in
            let texts = ["", "a", "\u{0}", "a\u{0}b", "ü🙂", String(repeating: "x", count: 100_000)]
            for text in texts {
                try database.write {
                    try $0.run("INSERT INTO things VALUES (?, ?, ?)", [text, Int64.min, 0.1])
                    let row = try $0.allRows(of: "SELECT * FROM things WHERE rowid = ?", [$0.lastInsertedRow])[0]
                    #expect(row.values == [.text(text), .integer(.min), .real(0.1)])
                }
            }
            try database.write { try $0.run("INSERT INTO things VALUES (?1, ?1, ?2)", [nil, true]) }
            let last = try database.read { try $0.allRows(of: "SELECT * FROM things WHERE name IS NULL")[0] }
            #expect(last.values == [.null, .null, .real(1)])
            #expect(try last.real("size") == 1)
            #expect(try last.text("name") == nil)
            #expect(throws: MissingValue.self) { try last.integer("none") }
            #expect(throws: MissingValue.self) { try last.text("size") }
        }
    }

    @Test("Values are those of the parameters' numbers, in any order")
    func numbered() throws {
        try withDatabase { database, _ in
            try database.write { connection in
                for number in 1...5 {
                    try connection.run("INSERT INTO things VALUES (?, ?, NULL)", ["n\(number)", number])
                }
            }
            let rows = try database.read {
                try $0.rows("SELECT name FROM things WHERE number > $2 ORDER BY number LIMIT $1", [Int64(2), Int64(1)])
            }
            #expect(try rows.map { try $0.text("name") } == ["n2", "n3"])
        }
    }

    @Test("What a transaction changed before it failed is not there, and the next one works")
    func rolledBack() throws {
        try withDatabase { database, _ in
            #expect(throws: Stop.self) {
                try database.write { connection in
                    try connection.run("INSERT INTO things (name) VALUES ('lost')")
                    throw Stop()
                }
            }
            #expect(throws: SQLiteFailure.self) {
                try database.write { connection in
                    try connection.run("INSERT INTO things (name) VALUES ('lost')")
                    try connection.execute("INSERT INTO nowhere VALUES (1)")
                }
            }
            try database.write { try $0.run("INSERT INTO things (name) VALUES ('kept')") }
            #expect(try names(database) == ["kept"])
        }
    }

    @Test("A statement that was stopped in the middle of its rows begins afresh")
    func stopped() throws {
        try withDatabase { database, _ in
            try database.write { connection in
                for name in ["a", "b", "c"] { try connection.run("INSERT INTO things (name) VALUES (?)", [name]) }
            }
            #expect(throws: Stop.self) {
                try database.read { connection in
                    try connection.forEachRow(of: "SELECT name FROM things ORDER BY rowid") { _ in throw Stop() }
                }
            }
            #expect(try names(database) == ["a", "b", "c"])
        }
    }

    @Test("A statement that reads all columns sees those that a table has got since it was prepared")
    func newColumn() throws {
        try withDatabase { database, _ in
            try database.write { try $0.run("INSERT INTO others VALUES (1)") }
            let all = "SELECT * FROM others"
            #expect(try database.read { try $0.allRows(of: all)[0].values } == [.integer(1)])
            try database.write { try $0.execute("ALTER TABLE others ADD COLUMN more TEXT NOT NULL DEFAULT 'yes'") }
            #expect(try database.read { try $0.allRows(of: all)[0].text("more") } == "yes")
            #expect(try database.read { try $0.columns(in: "others") } == ["id", "more"])
        }
    }

    @Test("Functions get bytes and texts, and are gone afterwards, also for statements that were prepared with them")
    func functions() throws {
        let count = SQLiteFunction("lengths", arguments: 2) { values in
            values[0].blob.map { "\($0.count) \(values[1].text ?? "-")" }
        }
        try withDatabase { database, _ in
            let sql = "SELECT lengths(CAST(? AS BLOB), ?) AS answer"
            let answers = try database.write { connection in
                try connection.with([count]) {
                    let length = try connection.firstValue(of: sql, ["a\u{0}b", "c"])
                    return [length, try connection.firstValue(of: sql, [nil, nil])]
                }
            }
            #expect(answers == [.text("3 c"), .null])
            #expect(throws: SQLiteFailure.self) { try database.read { try $0.firstValue(of: sql, ["", ""]) } }
        }
    }

    @Test("A database that is opened for reading cannot be changed, and is not made")
    func readOnly() throws {
        try withDatabase { database, path in
            try database.write { try $0.run("INSERT INTO things (name) VALUES ('a')") }
            let reader = try SQLiteDatabase(path: path, .readOnly)
            defer { reader.close() }
            #expect(try names(reader) == ["a"])
            #expect(throws: SQLiteFailure.self) { try reader.write { try $0.run("DELETE FROM things") } }
            #expect(throws: SQLiteFailure.self) { try SQLiteDatabase(path: path + ".none", .readOnly) }
        }
    }

    @Test("A text in double quotes is a name, and an error if no column has it")
    func doubleQuotes() throws {
        try withDatabase { database, _ in
            #expect(throws: SQLiteFailure.self) { try database.read { try $0.firstValue(of: "SELECT \"nothing\"") } }
        }
    }

    @Test("After its end every use of a database is an error")
    func closed() throws {
        try withDatabase { database, _ in
            database.close()
            #expect(throws: SQLiteFailure.self) { try database.read { try $0.hasTable("things") } }
        }
    }

    @Test("A migration that fails leaves nothing and is tried again; those before it are not run twice")
    func failedMigration() throws {
        try withDatabase { database, _ in
            func migrations(failing: Bool) -> SQLiteMigrations {
                var migrations = SQLiteMigrations()
                migrations.add("1", "INSERT INTO things (name) VALUES ('one')")
                migrations.add("2") { connection in
                    try connection.run("INSERT INTO things (name) VALUES ('two')")
                    if failing { throw Stop() }
                }
                return migrations
            }
            #expect(throws: Stop.self) { try migrations(failing: true).migrate(database) }
            #expect(try names(database) == ["one"])
            for _ in 1...2 { try migrations(failing: false).migrate(database) }
            #expect(try names(database) == ["one", "two"])
            #expect(try !migrations(failing: false).areSuperseded(in: database))
            #expect(try SQLiteMigrations().areSuperseded(in: database))
        }
    }
}
