public import ExchangeCore
internal import GRDB
public import SignalWire
internal import Core

/// Reads from a database that an exchange may have open meanwhile, and changes nothing in it.
private enum DatabaseReading {
    /// Gives what `body` reads.
    ///
    /// - Throws: ``StoreError``.
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

extension CallDetailRecord {
    /// Reads records, the newest first. An exchange may have the database open.
    ///
    /// - Parameters:
    ///   - user: Only those of this user, as inviter or invitee.
    ///   - limit: The maximum number of records.
    /// - Throws: ``StoreError``.
    public static func read(
        path: String, user: UserID? = nil, limit: Int = 1_000
    ) throws(StoreError) -> [CallDetailRecord] {
        try DatabaseReading.read(path) { database in
            let chosen = user == nil ? "" : "WHERE inviter = :user OR invitee = :user"
            let sql = "SELECT * FROM call_records \(chosen) ORDER BY sent_ms DESC, rowid DESC LIMIT :limit"
            var arguments: StatementArguments = ["limit": limit]
            if let user { arguments += ["user": user.text] }
            return try Row.fetchAll(database, sql: sql, arguments: arguments).map(CallDetailRecord.init)
        }
    }

    private init(_ row: Row) throws {
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
    public static func read(path: String, user: UserID? = nil, limit: Int = 1_000) throws(StoreError) -> [Record] {
        try DatabaseReading.read(path) { database in
            let chosen = user == nil ? "" : "WHERE user = :user"
            let sql = "SELECT * FROM dead_pushes \(chosen) ORDER BY rowid DESC LIMIT :limit"
            var arguments: StatementArguments = ["limit": limit]
            if let user { arguments += ["user": user.text] }
            return try Row.fetchAll(database, sql: sql, arguments: arguments).compactMap { row in
                guard let reason = Reason(rawValue: try row.decode(forColumn: "reason")) else { return nil }
                let at = WallClock(unixMilliseconds: try row.decode(forColumn: "died_ms"))
                return Record(push: try DeadPush(row, reason), at: at)
            }
        }
    }

    private init(_ row: Row, _ reason: Reason) throws {
        self.init(
            id: try row.identifier("id"), invite: try row.identifier("invite"), user: try row.identifier("user"),
            device: try row.identifier("device"), kind: try row.identifier("kind"),
            message: try row.decode(forColumn: "message"), reason: reason, detail: try row.decode(forColumn: "detail"),
            attempts: try row.decode(forColumn: "attempts"))
    }
}
