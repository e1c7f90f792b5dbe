internal import ExchangeCore
internal import GRDB
import SignalWire
import Core

/// Pushes that are to be made, and those that could not be.
extension ChangeWriter {
    func write(_ push: StoredPush) throws {
        try run(
            """
            INSERT INTO pushes (
                id, invite, user, device, target, message, inviter, group_id, payload, reason, deadline_ms, expires_ms,
                due_ms, attempts, settled
            ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET due_ms = excluded.due_ms, attempts = excluded.attempts, settled = excluded.settled
            """,
            [
                push.id.text, push.invite.text, push.user.text, push.device.text, try StoreCoding.text(push.target),
                push.message.rawValue, push.inviter.text, push.group?.text, push.payload?.text,
                push.reason,
                times.milliseconds(push.deadline), times.milliseconds(push.expires), times.milliseconds(push.due),
                push.attempts, push.isSettled,
            ])
    }

    func write(_ push: DeadPush, at: Instant) throws {
        try run(
            """
            INSERT INTO dead_pushes (id, invite, user, device, kind, message, reason, detail, attempts, died_ms)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                push.id.text, push.invite.text, push.user.text, push.device.text, push.kind.text, push.message,
                push.reason.rawValue,
                push.detail, push.attempts, recordTimes.milliseconds(at),
            ])
        try run(
            "DELETE FROM dead_pushes WHERE rowid <= (SELECT max(rowid) FROM dead_pushes) - ?", [DeadPush.capacity])
    }
}

extension SavedReader {
    func push(_ row: Row) throws -> StoredPush? {
        guard let message = StoredPush.Message(rawValue: try row.decode(forColumn: "message")) else { return nil }
        var push = StoredPush(
            id: try row.identifier("id"), invite: try row.identifier("invite"),
            user: try row.identifier("user"), device: try row.identifier("device"),
            target: try StoreCoding.value(DeviceRegister.PushTarget.self, try row.decode(forColumn: "target")),
            message: message, inviter: try row.identifier("inviter"), group: try row.optionalIdentifier("group_id"),
            reason: try row.decode(forColumn: "reason"),
            deadline: times.instant(try row.decode(Int64?.self, forColumn: "deadline_ms")),
            expires: times.instant(try row.decode(Int64.self, forColumn: "expires_ms")),
            due: times.instant(try row.decode(Int64.self, forColumn: "due_ms")),
            attempts: try row.decode(forColumn: "attempts"), isSettled: try row.decode(forColumn: "settled"))
        push.payload = try kept("payload", row)
        return push
    }
}
