public import ExchangeCore
public import SignalWire
internal import Core

/// Where an exchange keeps its state.
public enum StateLocation: Sendable {
    /// In a file of SQLite.
    case file(String)
    /// In a database of PostgreSQL.
    case postgres(PostgresConfiguration)

    /// Reads a table's newest rows. An exchange may have the database open; nothing is changed.
    ///
    /// - Parameter user: Only those that concern this user.
    fileprivate func newest<Row: ListedRow>(of user: UserID?, limit: Int) throws(StoreError) -> [Row] {
        switch self {
        case .file(let path): try Self.read(path) { try Row.newest(of: user, limit: limit, from: $0) }
        case .postgres(let configuration): try configuration.read { try Row.newest(of: user, limit: limit, from: $0) }
        }
    }

    /// Gives what `body` reads from a file.
    static func read<Value>(_ path: String, _ body: (SQLiteConnection) throws -> Value) throws(StoreError) -> Value {
        try StoreFiles.checkReadable(path)
        do {
            let database = try SQLiteDatabase(path: path, .readOnly)
            defer { database.close() }
            return try database.read(body)
        } catch {
            throw StoreError(error, "read", path)
        }
    }
}

/// A row of a table that people list, whichever database that is in.
private protocol ListedRow {
    /// What follows `SELECT * FROM`, without a choice of users.
    static var table: String { get }
    /// Which rows concern the user `$2`.
    static var concerns: String { get }
    static var newestFirst: String { get }

    /// Reads a row; nil for one that this version does not know.
    static func read(_ row: some StoredRow) throws -> Self?
}

extension ListedRow {
    fileprivate static func newest(of user: UserID?, limit: Int, from source: some RowSource) throws -> [Self] {
        let chosen = user == nil ? "" : "WHERE \(concerns)"
        let values: [any StoredValue] = [Int64(limit)] + (user.map { [$0.text] } ?? [])
        return try source.rows("SELECT * FROM \(table) \(chosen) ORDER BY \(newestFirst) LIMIT $1", values)
            .compactMap { try read($0) }
    }
}

extension CallDetailRecord: ListedRow {
    fileprivate static var table: String { "call_records" }
    fileprivate static var concerns: String { "inviter = $2 OR invitee = $2" }
    fileprivate static var newestFirst: String { "sent_ms DESC, rowid DESC" }

    /// Reads records, the newest first. An exchange may have the database open.
    ///
    /// - Parameters:
    ///   - user: Only those of this user, as inviter or invitee.
    ///   - limit: The maximum number of records.
    /// - Throws: ``StoreError``.
    public static func read(
        from location: StateLocation, user: UserID? = nil, limit: Int = 1_000
    ) throws(StoreError) -> [CallDetailRecord] {
        try location.newest(of: user, limit: limit)
    }

    fileprivate static func read(_ row: some StoredRow) throws -> CallDetailRecord? {
        func time(_ column: String) throws -> WallClock? {
            try row.decode(Int64?.self, forColumn: column).map { WallClock(unixMilliseconds: $0) }
        }
        var record = CallDetailRecord(
            invite: try row.identifier("invite"), inviter: try row.identifier("inviter"),
            inviterDevice: try row.identifier("inviter_device"), invitee: try row.identifier("invitee"),
            sentAt: WallClock(unixMilliseconds: try row.decode(forColumn: "sent_ms")))
        record.inviteeDevice = try row.optionalIdentifier("invitee_device")
        record.group = try row.optionalIdentifier("group_id")
        record.answeredAt = try time("answered_ms")
        record.endedAt = try time("ended_ms")
        record.reason = try row.decode(forColumn: "reason")
        record.durationMilliseconds = try row.decode(forColumn: "duration_ms")
        return record
    }
}

extension DeadPush {
    /// Reads those that are kept, the newest first. An exchange may have the database open.
    ///
    /// - Parameters:
    ///   - user: Only those for this user's devices.
    ///   - limit: The maximum number of records.
    /// - Throws: ``StoreError``.
    public static func read(
        from location: StateLocation, user: UserID? = nil, limit: Int = 1_000
    ) throws(StoreError) -> [Record] {
        try location.newest(of: user, limit: limit)
    }
}

extension DeadPush.Record: ListedRow {
    fileprivate static var table: String { "dead_pushes" }
    fileprivate static var concerns: String { "\"user\" = $2" }
    fileprivate static var newestFirst: String { "rowid DESC" }

    fileprivate static func read(_ row: some StoredRow) throws -> DeadPush.Record? {
        guard let reason = DeadPush.Reason(rawValue: try row.decode(forColumn: "reason")) else { return nil }
        let push = DeadPush(
            id: try row.identifier("id"), invite: try row.identifier("invite"), user: try row.identifier("user"),
            device: try row.identifier("device"), kind: try row.identifier("kind"),
            message: try row.decode(forColumn: "message"), reason: reason, detail: try row.decode(forColumn: "detail"),
            attempts: try row.decode(forColumn: "attempts"))
        return Self(push: push, at: WallClock(unixMilliseconds: try row.decode(forColumn: "died_ms")))
    }
}
