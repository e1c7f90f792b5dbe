internal import Core
internal import ExchangeCore

/// What a standby has read before it owns the database, so that it reads only what has changed since when it does.
///
/// PostgreSQL changes no row: a transaction that writes one leaves a new version behind, at a place of the table's file that is free, and
/// that version names the transaction (`xmin`). A place is free again once the version there is dead, which a transaction's own are not
/// before its end. So while a table has the same file, place and transaction identify the content, whichever snapshots it was read in.
/// An owner asks for these of all rows, and for the content of those that it does not have. Numbers of transactions come again on a
/// promoted replica, so this is thrown away with the connection; and with the tables' version and files, which a migration and
/// `VACUUM FULL` change.
final class ReadAhead {
    /// How long it is worth having: what has changed by then is read again.
    static let lifetime = Duration.seconds(10)

    /// How stored times were read.
    let times: TimeMap
    /// When it was read, by CLOCK_BOOTTIME.
    let readAt: Int64
    fileprivate let layout: Layout
    /// Of each table what became of its rows, by their versions.
    fileprivate var tables: [StoredTable: [String: Any]] = [:]

    /// What must be the same for a row's version to identify its content.
    fileprivate struct Layout: Equatable {
        let version: Int64
        let files: String

        init(_ row: PostgresRow?) throws {
            guard let row else { throw MissingValue(column: "version") }
            version = try row.decode(forColumn: "version")
            files = try row.decode(forColumn: "files")
        }
    }

    /// Reads everything, over a connection of a process that does not own the database.
    init(_ connection: PostgresConnection, clock: StoreClock) throws {
        readAt = PostgresConnection.now
        let facts = try connection.run([Self.facts], within: PostgresReader.patience)[0].first
        layout = try Layout(facts)
        let now = clock.instant()
        let time = try facts?.decode(Int64.self, forColumn: "now_ms") ?? 0
        times = TimeMap(offset: time - now.nanoseconds / 1_000_000)
        _ = try SavedReader(database: Collector(connection: connection, ahead: self), times: times, now: now).read()
    }

    fileprivate static let facts = PostgresStatement(
        """
        SELECT version, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
            (SELECT string_agg(oid || ' ' || pg_relation_filenode(oid), ',' ORDER BY oid) FROM pg_catalog.pg_class
             WHERE relnamespace = 'handset'::regnamespace AND relkind = 'r') AS files
        FROM exchange
        """)

    /// Whether it is too old.
    var isOutdated: Bool { PostgresConnection.now - readAt > Self.lifetime.nanoseconds }

    /// Reads every row, and keeps what becomes of it.
    private struct Collector: RowSource {
        let connection: PostgresConnection
        let ahead: ReadAhead

        func rows(_ sql: String, _ values: [any StoredValue]) throws -> [PostgresRow] {
            try PostgresReader(connection: connection).rows(sql, values)
        }

        func values<Value>(of table: StoredTable, _ make: (PostgresRow) throws -> Value) throws -> [Value] {
            let rows = try rows("SELECT \(StoredTable.rowVersion), * FROM \(table.name)\(table.ordering)", [])
            var kept: [String: Any] = [:]
            kept.reserveCapacity(rows.count)
            let values = try rows.map { row in
                let value = try make(row)
                kept[try row.version] = value
                return value
            }
            ahead.tables[table] = kept
            return values
        }
    }
}

/// Answers the reader's queries in one transaction, which begins with the proof that the lease is this process's: no other process can
/// write until it has ended. What a ``ReadAhead`` contains is not read again.
struct PostgresContinuation: RowSource {
    private let connection: PostgresConnection
    private let ahead: ReadAhead
    /// Of each table the versions of all rows, in their order.
    private let versions: [StoredTable: [PostgresRow]]

    /// - Parameter fence: The proof.
    /// - Returns: Nil if what was read ahead is of other tables than those now.
    init?(_ ahead: ReadAhead, _ connection: PostgresConnection, fence: PostgresStatement) throws {
        self.ahead = ahead
        self.connection = connection
        let queries = StoredTable.all.map { table in
            PostgresStatement("SELECT \(StoredTable.rowVersion) FROM \(table.name)\(table.ordering)")
        }
        // The tables' files come last: a query locks its table until the end of the transaction, so that these are the files that were read.
        let results = try connection.run(
            [PostgresStatement("BEGIN"), fence] + queries + [ReadAhead.facts], within: PostgresReader.patience)
        guard try ReadAhead.Layout(results.last?.first) == ahead.layout else {
            _ = try connection.run([PostgresStatement("ROLLBACK")], within: PostgresReader.patience)
            return nil
        }
        versions = Dictionary(uniqueKeysWithValues: zip(StoredTable.all, results.dropFirst(2).map(\.all)))
    }

    /// Ends the transaction.
    func end() throws { _ = try connection.run([PostgresStatement("COMMIT")], within: PostgresReader.patience) }

    func rows(_ sql: String, _ values: [any StoredValue]) throws -> [PostgresRow] {
        try PostgresReader(connection: connection).rows(sql, values)
    }

    func values<Value>(of table: StoredTable, _ make: (PostgresRow) throws -> Value) throws -> [Value] {
        let versions = try (versions[table] ?? []).map { try $0.version }
        let known = ahead.tables[table] ?? [:]
        var values = versions.map { version in known[version].flatMap { $0 as? Value } }
        var missing: [String: Int] = [:]
        for (index, version) in versions.enumerated() where values[index] == nil { missing[version] = index }
        for row in try rows(of: table, missing.keys) {
            if let index = missing[try row.version] { values[index] = try make(row) }
        }
        return try values.map { value in
            guard let value else { throw MissingValue(column: table.name) }
            return value
        }
    }

    private func rows(of table: StoredTable, _ versions: some Collection<String>) throws -> [PostgresRow] {
        guard !versions.isEmpty else { return [] }
        let places = versions.map { version in #""\#(version.prefix { $0 != " " })""# }.joined(separator: ",")
        let sql = "SELECT \(StoredTable.rowVersion), * FROM \(table.name) WHERE ctid = ANY ($1::tid[])"
        return try connection.run([PostgresStatement(sql, ["{\(places)}"])], within: PostgresReader.patience)[0].all
    }
}

extension StoredTable {
    /// Place and transaction of a row.
    fileprivate static let rowVersion = "ctid || ' ' || xmin AS row_version"
}

extension PostgresRow {
    fileprivate var version: String { get throws { try decode(forColumn: "row_version") } }
}
