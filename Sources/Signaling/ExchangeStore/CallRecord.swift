internal import GRDB
public import SignalWire
public import Timekeeping

/// The record of one call, answered or missed (CALL-7): of one invitee of one invite.
public struct CallRecord: Hashable, Sendable {
    /// The invite's id.
    public var invite: InviteID
    /// Who called.
    public var inviter: UserID
    /// With which device.
    public var inviterDevice: DeviceID
    /// Who was called.
    public var invitee: UserID
    /// The device that accepted, if one did.
    public var inviteeDevice: DeviceID?
    /// The group that was called, if it was one.
    public var group: GroupID?
    /// When the invite was sent.
    public var sentAt: WallClock
    /// When it was accepted.
    public var answeredAt: WallClock?
    /// When it was over; `nil` while it rings or stands.
    public var endedAt: WallClock?
    /// Why it ended, as in CALL-5, or a reason that a device gave.
    public var reason: String?
    /// How long media flowed, in milliseconds, as the device that hung up told it.
    public var durationMilliseconds: Int64?

    /// Reads records, the newest first. An exchange may have the database meanwhile.
    ///
    /// - Parameters:
    ///   - user: Only those of this user, as inviter or invitee.
    ///   - limit: At most so many.
    /// - Throws: ``StoreError``.
    public static func read(
        path: String, user: UserID? = nil, limit: Int = 1_000
    ) throws(StoreError) -> [CallRecord] {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(5)
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? queue.close() }
            return try queue.read { database in
                let chosen = user == nil ? "" : "WHERE inviter = :user OR invitee = :user"
                let sql = "SELECT * FROM call_records \(chosen) ORDER BY sent_ms DESC, rowid DESC LIMIT :limit"
                var arguments: StatementArguments = ["limit": limit]
                if let user { arguments += ["user": user.text] }
                return try Row.fetchAll(database, sql: sql, arguments: arguments).map(CallRecord.init)
            }
        } catch {
            throw StoreError(error, "read", path)
        }
    }

    private init(_ row: Row) throws {
        func time(_ column: String) throws -> WallClock? {
            try row.decode(Int64?.self, forColumn: column).map { WallClock(unixMilliseconds: $0) }
        }
        invite = try row.identifier("invite")
        inviter = try row.identifier("inviter")
        inviterDevice = try row.identifier("inviter_device")
        invitee = try row.identifier("invitee")
        inviteeDevice = try row.optionalIdentifier("invitee_device")
        group = try row.optionalIdentifier("group_id")
        sentAt = WallClock(unixMilliseconds: try row.decode(forColumn: "sent_ms"))
        answeredAt = try time("answered_ms")
        endedAt = try time("ended_ms")
        reason = try row.decode(forColumn: "reason")
        durationMilliseconds = try row.decode(forColumn: "duration_ms")
    }
}
