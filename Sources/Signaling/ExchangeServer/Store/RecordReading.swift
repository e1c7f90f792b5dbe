public import ExchangeCore
internal import GRDB
public import SignalWire
internal import Core

/// Where an exchange keeps its state.
public enum StateLocation: Sendable {
    /// In a file of SQLite.
    case file(String)
    /// In a database of PostgreSQL.
    case postgres(PostgresConfiguration)

    /// Gives what a query finds. An exchange may have the database open; nothing is changed.
    func answer<Query: StateQuery>(_ query: Query) throws(StoreError) -> Query.Answer {
        switch self {
        case .file(let path): try Self.read(path) { try query.answer(from: $0) }
        case .postgres(let configuration): try configuration.read { try query.answer(from: $0) }
        }
    }

    /// Gives what `body` reads from a file.
    static func read<Value>(_ path: String, _ body: (Database) throws -> Value) throws(StoreError) -> Value {
        try StoreFiles.checkReadable(path)
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(5)
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? queue.close() }
            return try queue.read(body)
        } catch {
            throw StoreError(error, "read", path)
        }
    }
}

/// What is asked of the state of an exchange, whichever database that is in.
protocol StateQuery {
    associatedtype Answer
    func answer(from source: some RowSource) throws -> Answer
}

extension CallDetailRecord {
    /// Reads records, the newest first. An exchange may have the database open.
    ///
    /// - Parameters:
    ///   - user: Only those of this user, as inviter or invitee.
    ///   - limit: The maximum number of records.
    /// - Throws: ``StoreError``.
    public static func read(
        from location: StateLocation, user: UserID? = nil, limit: Int = 1_000
    ) throws(StoreError) -> [CallDetailRecord] {
        try location.answer(Query(user: user, limit: limit))
    }

    private struct Query: StateQuery {
        let user: UserID?
        let limit: Int

        func answer(from source: some RowSource) throws -> [CallDetailRecord] {
            let chosen = user == nil ? "" : "WHERE inviter = $2 OR invitee = $2"
            let sql = "SELECT * FROM call_records \(chosen) ORDER BY sent_ms DESC, rowid DESC LIMIT $1"
            let values: [any StoredValue] = [Int64(limit)] + (user.map { [$0.text] } ?? [])
            return try source.rows(sql, values).map { try CallDetailRecord($0) }
        }
    }

    private init(_ row: some StoredRow) throws {
        func time(_ column: String) throws -> WallClock? {
            try row.decode(Int64?.self, forColumn: column).map { WallClock(unixMilliseconds: $0) }
        }
        self.init(
            invite: try row.identifier("invite"), inviter: try row.identifier("inviter"),
            inviterDevice: try row.identifier("inviter_device"), invitee: try row.identifier("invitee"),
            sentAt: WallClock(unixMilliseconds: try row.decode(forColumn: "sent_ms")))
        inviteeDevice = try row.optionalIdentifier("invitee_device")
        group = try row.optionalIdentifier("group_id")
        answeredAt = try time("answered_ms")
        endedAt = try time("ended_ms")
        reason = try row.decode(forColumn: "reason")
        durationMilliseconds = try row.decode(forColumn: "duration_ms")
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
        try location.answer(Query(user: user, limit: limit))
    }

    private struct Query: StateQuery {
        let user: UserID?
        let limit: Int

        func answer(from source: some RowSource) throws -> [Record] {
            let chosen = user == nil ? "" : "WHERE \"user\" = $2"
            let sql = "SELECT * FROM dead_pushes \(chosen) ORDER BY rowid DESC LIMIT $1"
            let values: [any StoredValue] = [Int64(limit)] + (user.map { [$0.text] } ?? [])
            return try source.rows(sql, values).compactMap { row in
                guard let reason = Reason(rawValue: try row.decode(forColumn: "reason")) else { return nil }
                let at = WallClock(unixMilliseconds: try row.decode(forColumn: "died_ms"))
                return Record(push: try DeadPush(row, reason), at: at)
            }
        }
    }

    private init(_ row: some StoredRow, _ reason: Reason) throws {
        self.init(
            id: try row.identifier("id"), invite: try row.identifier("invite"), user: try row.identifier("user"),
            device: try row.identifier("device"), kind: try row.identifier("kind"),
            message: try row.decode(forColumn: "message"), reason: reason, detail: try row.decode(forColumn: "detail"),
            attempts: try row.decode(forColumn: "attempts"))
    }
}
