public import ExchangeCore
internal import GRDB
public import SignalWire
internal import Core

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
