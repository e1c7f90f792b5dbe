internal import GRDB
public import SignalWire
public import Timekeeping

/// A push that could not be made, for people to look at. Its token is not in it.
public struct DeadPush: Hashable, Sendable {
    /// Why nothing more is tried.
    public enum Reason: String, Hashable, Sendable {
        /// The service does not know the device any more; its token has been removed.
        case gone
        /// The webhook will not take it, now or later.
        case refused
        /// Its time was over before the webhook took it.
        case expired
        /// Too many others were waiting.
        case overflow
    }

    /// The push's id, as the webhook was given it.
    public var id: PushID
    /// The invite that it was about.
    public var invite: InviteID
    /// Whose device it was for.
    public var user: UserID
    /// The device.
    public var device: DeviceID
    /// The kind of push token.
    public var kind: PushKind
    /// What it would have told: `invite` or `ended`.
    public var message: String
    /// Why nothing more is tried.
    public var reason: Reason
    /// What the last attempt came to, in a few words; `nil` without one.
    public var detail: String?
    /// Attempts that were made.
    public var attempts: Int

    /// Makes an entry.
    public init(_ push: StoredPush, _ reason: Reason, detail: String?) {
        id = push.id
        invite = push.invite
        user = push.user
        device = push.device
        kind = push.target.kind
        message = push.message.rawValue
        self.reason = reason
        self.detail = detail
        attempts = push.attempts
    }

    /// How many are kept; the oldest go first.
    static let capacity = 10_000

    /// One as it was read from disk.
    public struct Record: Hashable, Sendable {
        /// The push.
        public var push: DeadPush
        /// When it was given up.
        public var at: WallClock
    }

    /// Reads those that are kept, the newest first. An exchange may have the database meanwhile.
    ///
    /// - Parameters:
    ///   - user: Only those for this user's devices.
    ///   - limit: At most so many.
    /// - Throws: ``StoreError``.
    public static func read(path: String, user: UserID? = nil, limit: Int = 1_000) throws(StoreError) -> [Record] {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(5)
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? queue.close() }
            return try queue.read { database in
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
        } catch {
            throw StoreError(error, "read", path)
        }
    }

    private init(_ row: Row, _ reason: Reason) throws {
        id = try row.identifier("id")
        invite = try row.identifier("invite")
        user = try row.identifier("user")
        device = try row.identifier("device")
        kind = try row.identifier("kind")
        message = try row.decode(forColumn: "message")
        self.reason = reason
        detail = try row.decode(forColumn: "detail")
        attempts = try row.decode(forColumn: "attempts")
    }
}
