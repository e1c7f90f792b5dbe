public import ExchangeCore
internal import Core

/// Brings the state of an exchange from a file of SQLite into an empty database of PostgreSQL.
///
/// No exchange may use either meanwhile. The file is not changed, except that an older version of it becomes one of this version, as at
/// an exchange's start. What was set aside in it stays there.
public struct StateImport: Sendable {
    /// The rows of one table.
    public struct Count: Hashable, Sendable {
        /// The table's name, in both databases.
        public var table: String
        /// How many rows of it there are in the file.
        public var rows: Int
    }

    /// How many rows are sent at once.
    private static let rowsAtOnce = 1_000
    /// How long no exchange takes the database if this process dies: ten times as much.
    private static let lease = Duration.seconds(60)

    private let path: String
    private let configuration: PostgresConfiguration

    /// - Parameters:
    ///   - path: The file of SQLite.
    ///   - configuration: Where it is to go.
    public init(from path: String, into configuration: PostgresConfiguration) {
        self.path = path
        self.configuration = configuration
    }

    /// Counts what would be brought over, and checks that the database could be used. Changes nothing.
    ///
    /// - Throws: ``StoreError``.
    public func rehearse() throws(StoreError) -> [Count] {
        _ = try configuration.check()
        return try StateLocation.read(path) { database in
            try ImportedTable.all.filter { try database.hasTable($0.name) }.map { table in
                Count(table: table.name, rows: try table.count(in: database))
            }
        }
    }

    /// Brings everything over in one transaction, in which the counts of both must agree.
    ///
    /// - Throws: ``StoreError``; then the database is as before.
    public func run() throws(StoreError) -> [Count] {
        try StoreFiles.checkReadable(path)
        let source = try ExchangeStore.open(path: path)
        defer { source.close() }
        var settings = PostgresStore.Settings(configuration)
        settings.lease = Self.lease
        let store = PostgresStore(settings)
        defer { store.close() }
        if case .waiting(let owner) = try store.attempt() {
            throw refusal("\(owner) owns it. Stop all exchanges on it first.", .inUse)
        }
        var counts: [Count] = []
        try store.transact { times, run in
            try self.expectEmpty(run)
            counts = try source.reading { database, stored in
                try self.bringExchange(database, run)
                return try ImportedTable.all.map { table in
                    try self.bring(table, from: database, shift: times.offset &- stored.offset, run)
                }
            }
            try self.expect(counts, run)
            _ = try run([
                PostgresStatement(
                    "INSERT INTO call_record_counts SELECT inviter, count(*) FROM call_records GROUP BY inviter"),
                PostgresStatement(
                    "UPDATE call_record_counts SET records = (SELECT count(*) FROM call_records) WHERE inviter = ''"),
            ])
        }
        return counts
    }

    private typealias Run = ([PostgresStatement]) throws -> [PostgresRows]

    private func rows(of table: String, _ run: Run) throws -> Int {
        let answer = try run([PostgresStatement("SELECT count(*) AS n FROM \(table)")])[0].first
        return try answer?.decode(Int.self, forColumn: "n") ?? 0
    }

    private func expectEmpty(_ run: Run) throws {
        for table in ImportedTable.all where try rows(of: table.name, run) > 0 {
            throw refusal("its table \(table.name) is not empty. Name a database that no exchange has used yet.")
        }
    }

    private func expect(_ counts: [Count], _ run: Run) throws {
        for count in counts {
            let found = try rows(of: count.table, run)
            guard found == count.rows else {
                throw refusal("its table \(count.table) got \(found) of \(count.rows) rows; nothing was kept")
            }
        }
    }

    private func bring(
        _ table: ImportedTable, from database: SQLiteConnection, shift: Int64, _ run: Run
    ) throws -> Count {
        let columns = try table.columns(run)
        let insertion = table.insertion(columns)
        var count = Count(table: table.name, rows: 0)
        var waiting: [PostgresStatement] = []
        try database.forEachRow(of: table.selection(ordered: columns.isOrdered)) { row in
            waiting.append(
                PostgresStatement(insertion, try columns.all.map { try $0.value(in: row, of: table, shift: shift) }))
            count.rows += 1
            if waiting.count == Self.rowsAtOnce {
                _ = try run(waiting)
                waiting.removeAll(keepingCapacity: true)
            }
        }
        _ = try run(waiting)
        return count
    }

    /// That an exchange has read a users file, even if it had no users; and its number of runs, from which it makes names.
    private func bringExchange(_ database: SQLiteConnection, _ run: Run) throws {
        let sql = "SELECT runs, file_users_known FROM exchange"
        guard let row = try database.allRows(of: sql).first else { return }
        let (runs, isKnown) = (try row.integer("runs") ?? 0, try row.bool("file_users_known") ?? false)
        _ = try run([
            PostgresStatement(
                "UPDATE exchange SET runs = greatest(runs, $1), file_users_known = $2", [runs.stored, isKnown.stored])
        ])
    }

    private func refusal(_ reason: String, _ code: StoreError.Code = .failed) -> StoreError {
        StoreError(code, "cannot bring \(path) into the database \(configuration.address): \(reason)")
    }
}

/// One table that both databases have.
private struct ImportedTable {
    /// Its columns in PostgreSQL.
    struct Columns {
        var all: [Column]
        /// Whether the order of its rows counts.
        var isOrdered: Bool
    }

    struct Column {
        var name: String
        var isBoolean: Bool

        /// What a row of SQLite has in it, as PostgreSQL reads it.
        ///
        /// - Parameter shift: For times, in milliseconds.
        func value(in row: SQLiteRow, of table: ImportedTable, shift: Int64) throws -> String? {
            switch try row.value(name) {
            case .null: nil
            case .integer(let number) where isBoolean: (number != 0).stored
            case .integer(let number): (table.times.contains(name) ? number &+ shift : number).stored
            case .real(let number): number.stored
            case .text(let text): ((try? StoredText.decode(text)) ?? text).stored
            case .blob: throw MissingValue(column: name)
            }
        }
    }

    let name: String
    /// What is read of it.
    var source: String?

    /// All but those of the exchange itself and of its lease. Of a push only the first failure counts.
    static let all =
        [
            "tokens", "logins", "sessions", "groups", "push_targets", "invites", "calls", "streams", "event_bodies",
            "events", "outdated_events", "users", "file_users", "acquaintances", "pushes", "call_records",
            "letters", "letter_marks",
        ].map { ImportedTable(name: $0) } + [
            ImportedTable(
                name: "dead_pushes",
                source: "dead_pushes WHERE rowid IN (SELECT min(rowid) FROM dead_pushes GROUP BY id, message)")
        ]

    /// Its columns that have times, which are those of the database's clock.
    var times: Set<String> { Set(PostgresSchema.timed.filter { $0.0 == name }.map(\.1)) }

    func count(in database: SQLiteConnection) throws -> Int {
        Int(clamping: try database.firstValue(of: "SELECT count(*) FROM \(source ?? name)").integer ?? 0)
    }

    func selection(ordered: Bool) -> String { "SELECT * FROM \(source ?? name)\(ordered ? " ORDER BY rowid" : "")" }

    func columns(_ run: ([PostgresStatement]) throws -> [PostgresRows]) throws -> Columns {
        let sql = """
            SELECT column_name::text AS name, data_type = 'boolean' AS boolean FROM information_schema.columns
            WHERE table_schema = 'handset' AND table_name = $1 ORDER BY ordinal_position
            """
        let found = try run([PostgresStatement(sql, [name])])[0].all.map { row in
            Column(name: try row.decode(forColumn: "name"), isBoolean: try row.decode(forColumn: "boolean"))
        }
        // The order of writing is numbered again.
        return Columns(
            all: found.filter { $0.name != "rowid" }, isOrdered: found.contains { $0.name == "rowid" })
    }

    func insertion(_ columns: Columns) -> String {
        let names = columns.all.map { "\"\($0.name)\"" }.joined(separator: ", ")
        let places = columns.all.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
        return "INSERT INTO \(name) (\(names)) VALUES (\(places))"
    }
}
