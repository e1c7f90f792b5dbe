internal import ExchangeCore
internal import FoundationEssentials
import JSON
import SignalWire
import Core

/// Writes changes within one transaction. Statements are prepared once for a connection.
struct ChangeWriter {
    private let connection: SQLiteConnection
    /// For deadlines and moments: as the others in the file are.
    private let times: TimeMap
    /// For records: as the clock is now.
    private let recordTimes: TimeMap
    private let bodies: SharedBodies
    private let removal: RecordRemoval

    init(
        connection: SQLiteConnection, times: TimeMap, recordTimes: TimeMap, bodies: SharedBodies, removal: RecordRemoval
    ) {
        self.connection = connection
        self.times = times
        self.recordTimes = recordTimes
        self.bodies = bodies
        self.removal = removal
    }

    func write(_ change: Change) throws {
        switch change {
        case .token(let token): try write(token)
        case .tokenForgotten(let digest): try run("DELETE FROM tokens WHERE digest = ?", [digest])
        case .login(let login): try write(login)
        case .loginForgotten(let id): try run("DELETE FROM logins WHERE id = ?", [id])
        case .session(let session): try write(session)
        case .sessionForgotten(let id): try run("DELETE FROM sessions WHERE id = ?", [id.text])
        case .invite(let invite): try write(invite)
        case .inviteForgotten(let id): try run("DELETE FROM invites WHERE id = ?", [id.text])
        case .group(let group): try write(group)
        case .groupForgotten(let id): try run("DELETE FROM groups WHERE id = ?", [id.text])
        case .pushTargets(let entry): try write(entry)
        case .push(let push): try write(push)
        case .pushForgotten(let id): try run("DELETE FROM pushes WHERE id = ?", [id.text])
        case .pushDied(let push, let at): try write(push, at: at)
        case .deadPushesPruned(let before):
            try run("DELETE FROM dead_pushes WHERE died_ms < ?", [recordTimes.milliseconds(before)])
        case .userAdded(let user, let added):
            try run("INSERT OR REPLACE INTO users (id, added) VALUES (?, ?)", [user.text, added])
        case .userForgotten(let user): try run("DELETE FROM users WHERE id = ?", [user.text])
        case .fileUsers(let users): try write(fileUsers: users)
        case .acquaintance(let entry): try write(entry)
        case .acquaintanceForgotten(let owner, let user):
            try run("DELETE FROM acquaintances WHERE owner = ? AND user = ?", [owner.text, user.text])
        case .acquaintancesForgotten(let user):
            try run("DELETE FROM acquaintances WHERE owner = ?1 OR user = ?1", [user.text])
        case .call(let call):
            try run(
                """
                INSERT OR REPLACE INTO calls (invite, invitee, invitee_device, inviter, inviter_device, accepted_ms)
                VALUES (?, ?, ?, ?, ?, ?)
                """,
                [
                    call.invite.text, call.invitee.text, call.inviteeDevice.text, call.inviter.text,
                    call.inviterDevice.text,
                    times.milliseconds(call.acceptedAt),
                ])
        case .callForgotten(let invite, let invitee):
            try run("DELETE FROM calls WHERE invite = ? AND invitee = ?", [invite.text, invitee.text])
        case .event(let event): try write(event)
        case .sequenceReserved(let principal, let number): try reserve(principal, upTo: Int64(clamping: number))
        case .eventsForgotten(let principal, let number): try forget(principal, upTo: Int64(clamping: number))
        case .streamForgotten(let principal):
            let key = [principal.user.text, principal.guestColumn, principal.roomColumn]
            try run("DELETE FROM events WHERE user = ? AND guest = ? AND room = ?", key)
            try run("DELETE FROM streams WHERE user = ? AND guest = ? AND room = ?", key)
            try run("DELETE FROM outdated_events WHERE user = ? AND guest = ? AND room = ?", key)
        case .record(let step): try write(step)
        case .pruned(let eventsBefore, let recordsBefore):
            try pruneEvents(before: times.milliseconds(eventsBefore))
            removal.outdated = recordTimes.milliseconds(recordsBefore)
        case .eventsPruned(let before): try pruneEvents(before: times.milliseconds(before))
        case .letter(let letter):
            try run(
                "INSERT OR REPLACE INTO letters (sender, receiver, number, body) VALUES (?, ?, ?, ?)",
                [letter.from.number, letter.to.number, Int64(clamping: letter.number), letter.body.text])
        case .lettersForgotten(let sender, let receiver, let number):
            try run(
                "DELETE FROM letters WHERE sender = ? AND receiver = ? AND number <= ?",
                [sender.number, receiver.number, Int64(clamping: number)])
        case .letterMarks(let marks):
            try run(
                """
                INSERT OR REPLACE INTO letter_marks (shard, peer, acknowledged, consumed, peer_epoch)
                VALUES (?, ?, ?, ?, ?)
                """,
                [
                    marks.shard.number, marks.peer.number, Int64(clamping: marks.acknowledged),
                    Int64(clamping: marks.consumed), marks.peerEpoch?.description,
                ])
        }
    }

    /// Writes what differs: a file may have some fifty thousand users, of which one has changed.
    private func write(fileUsers users: [UserID]) throws {
        let new = Set(users.map(\.text))
        let old = Set(try connection.allRows(of: "SELECT id FROM file_users").compactMap(\.values[0].text))
        for user in old.subtracting(new) { try run("DELETE FROM file_users WHERE id = ?", [user]) }
        for user in new.subtracting(old) { try run("INSERT INTO file_users (id) VALUES (?)", [user]) }
        try run("UPDATE exchange SET file_users_known = 1", [])
    }

    private func run(_ sql: String, _ values: [(any SQLiteBindable)?]) throws {
        try connection.run(sql, values)
    }

    private func write(_ token: StoredToken) throws {
        try run(
            """
            INSERT OR REPLACE INTO tokens (
                digest, login, refresh, user, anonymous, application, scope, generation, superseded_ms, revoked,
                expires_ms, forgotten_ms, epoch
            ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                token.digest, token.login, token.isRefresh, token.user?.text ?? "", token.isAnonymous,
                token.application?.text, try token.scope.map { try StoreCoding.text($0) },
                Int64(clamping: token.generation), times.milliseconds(token.superseded), token.isRevoked,
                times.milliseconds(token.expires), times.milliseconds(token.forgotten), token.epoch,
            ])
    }

    private func write(_ login: StoredLogin) throws {
        try run(
            "INSERT OR REPLACE INTO logins (id, issuer, family, newest, reached, used_ms) VALUES (?, ?, ?, ?, ?, ?)",
            [
                login.id, login.issuer, login.family, Int64(clamping: login.newest), Int64(clamping: login.reached),
                times.milliseconds(login.used),
            ])
    }

    /// A session keeps its place among the others.
    private func write(_ session: StoredSession) throws {
        try run(
            """
            INSERT INTO sessions (
                id, user, guest, room, device, registered, connection, scope, login, places, resumable_until_ms,
                missed
            ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET registered = excluded.registered, scope = excluded.scope, login = excluded.login,
                places = excluded.places, resumable_until_ms = excluded.resumable_until_ms, missed = excluded.missed
            """,
            [
                session.id.text, session.principal.user.text, session.principal.guestColumn,
                session.principal.roomColumn, session.device.text, session.isRegistered,
                session.connection.text, try session.scope.map { try StoreCoding.text($0) }, session.login,
                try StoreCoding.text(session.places), times.milliseconds(session.resumableUntil),
                session.isMissed,
            ])
    }

    /// A group keeps its place among the others.
    private func write(_ group: StoredGroup) throws {
        try run(
            """
            INSERT INTO groups (id, name, owner, members) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET name = ?2, owner = ?3, members = ?4
            """,
            [group.id.text, group.name.map(StoredText.encode), group.owner.text, try StoreCoding.text(group.members)])
    }

    /// What is set last comes last.
    private func write(_ entry: StoredPushTargets) throws {
        guard !entry.targets.isEmpty else {
            return try run(
                "DELETE FROM push_targets WHERE user = ? AND device = ?", [entry.user.text, entry.device.text])
        }
        try run(
            "INSERT OR REPLACE INTO push_targets (user, device, targets) VALUES (?, ?, ?)",
            [entry.user.text, entry.device.text, try StoreCoding.text(entry.targets)])
    }

    private func write(_ invite: StoredInvite) throws {
        try run(
            """
            INSERT INTO invites (
                id, inviter, inviter_device, group_id, invitees, data, payload, timeout_payload, idempotency_key,
                ttl_s, sent_ms, deadline_ms, forgotten_ms, online_only
            ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET group_id = excluded.group_id, invitees = excluded.invitees, data = excluded.data,
                payload = excluded.payload, timeout_payload = excluded.timeout_payload,
                idempotency_key = excluded.idempotency_key, forgotten_ms = excluded.forgotten_ms
            """,
            [
                invite.id.text, invite.inviter.text, invite.inviterDevice.text, invite.group?.text,
                try StoreCoding.text(invite.invitees),
                invite.data?.text, invite.payload?.text, invite.timeoutPayload?.text, invite.idempotencyKey?.text,
                invite.ttlSeconds,
                times.milliseconds(invite.sentAt), times.milliseconds(invite.deadline),
                times.milliseconds(invite.forgottenAt), invite.isOnlineOnly,
            ])
    }

    private func write(_ step: CallStep) throws {
        let at = recordTimes.milliseconds(step.at)
        switch step.kind {
        case .rang(let inviter, let device, let group):
            try run(
                """
                INSERT OR IGNORE INTO call_records (invite, invitee, inviter, inviter_device, group_id, sent_ms)
                VALUES (?, ?, ?, ?, ?, ?)
                """, [step.invite.text, step.invitee.text, inviter.text, device.text, group?.text, at])
            if connection.changedRows > 0 { try trimRecords(of: inviter) }
        case .answered(let device):
            try run(
                "UPDATE call_records SET answered_ms = ?, invitee_device = ? WHERE invite = ? AND invitee = ?",
                [at, device.text, step.invite.text, step.invitee.text])
        case .ended(let reason, let duration):
            // What ended a call first is why it ended.
            try run(
                """
                UPDATE call_records SET ended_ms = ?, reason = ?, duration_ms = ?
                WHERE invite = ? AND invitee = ? AND ended_ms IS NULL
                """, [at, StoredText.encode(reason), duration, step.invite.text, step.invitee.text])
        }
    }

    /// Removes old records, as many as one commit may.
    func removeOutdatedRecords() throws {
        guard let before = removal.outdated, removal.rowsLeft > 0 else { return }
        let rows = removal.take(.max)
        try run(
            """
            DELETE FROM call_records WHERE rowid IN (
                SELECT rowid FROM call_records WHERE sent_ms < ? ORDER BY sent_ms LIMIT ?
            )
            """, [before, rows])
        if connection.changedRows < rows { removal.outdated = nil }
    }

    /// Drops a caller's oldest records past its limit, then the oldest of all. The order of writing decides which is
    /// oldest, not the clock. Of a surplus that a lower limit has made, later calls drop the rest.
    private func trimRecords(of caller: UserID) throws {
        let counts = try connection.allRows(
            of: """
                SELECT (SELECT records FROM call_record_counts WHERE inviter = ?) AS own, call_records AS total
                FROM exchange
                """, [caller.text])
        guard let counts = counts.first else { return }
        let own = Int(clamping: try counts.integer("own") ?? 0)
        let total = try counts.decode(Int.self, forColumn: "total")
        let dropped = removal.take(max(0, own - removal.limits.perCaller))
        if dropped > 0 {
            try run(
                """
                DELETE FROM call_records WHERE rowid IN (
                    SELECT rowid FROM call_records WHERE inviter = ? ORDER BY rowid LIMIT ?
                )
                """, [caller.text, dropped])
        }
        let others = removal.take(max(0, total - dropped - removal.limits.total))
        guard others > 0 else { return }
        try run(
            "DELETE FROM call_records WHERE rowid IN (SELECT rowid FROM call_records ORDER BY rowid LIMIT ?)", [others])
    }

    private func write(_ entry: StoredAcquaintance) throws {
        try run(
            """
            INSERT INTO acquaintances (owner, user, used_ms) VALUES (?1, ?2, ?3)
            ON CONFLICT DO UPDATE SET used_ms = ?3
            """, [entry.owner.text, entry.user.text, times.milliseconds(entry.used)])
    }
}

/// The bodies of events that one transaction writes: those that several events have are rows of their own.
final class SharedBodies {
    private var uses: [UInt64: Int] = [:]
    /// The rows of those that have been written.
    private var rows: [UInt64: Int64] = [:]

    init(_ changes: [Change]) {
        for case .event(let event) in changes { uses[event.body.number, default: 0] += 1 }
    }

    /// The row of a body that several events of this transaction share; `nil` for one that is stored in its event's
    /// row.
    func row(of body: EventBody, write: (EventBody) throws -> Int64) rethrows -> Int64? {
        guard uses[body.number] ?? 0 > 1 else { return nil }
        if let row = rows[body.number] { return row }
        let row = try write(body)
        rows[body.number] = row
        return row
    }
}

/// Events, and how they are numbered.
extension ChangeWriter {
    private func write(_ event: StoredEvent) throws {
        let (device, except, isForAll): (DeviceID?, DeviceID?, Bool) =
            switch event.audience {
            case .device(let device): (device, nil, false)
            case .registered(let except): (nil, except, false)
            case .every: (nil, nil, true)
            }
        let shared = try bodies.row(of: event.body) { body in
            try run("INSERT INTO event_bodies (text) VALUES (?)", [body.text.text])
            return connection.lastInsertedRow
        }
        try run(
            """
            INSERT INTO events (user, guest, room, sequence, body, shared, device, except_device, for_all, at_ms)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET body = excluded.body, shared = excluded.shared, device = excluded.device,
                except_device = excluded.except_device, for_all = excluded.for_all, at_ms = excluded.at_ms
            """,
            [
                event.principal.user.text, event.principal.guestColumn, event.principal.roomColumn,
                Int64(clamping: event.sequence), shared == nil ? event.body.text.text : "", shared, device?.text,
                except?.text, isForAll, times.milliseconds(event.at),
            ])
    }

    private func reserve(_ principal: Principal, upTo number: Int64) throws {
        try run(
            """
            INSERT INTO streams (user, guest, room, reserved) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET reserved = max(reserved, ?4)
            """, [principal.user.text, principal.guestColumn, principal.roomColumn, number])
    }

    private func forget(_ principal: Principal, upTo number: Int64) throws {
        let key: [(any SQLiteBindable)?] = [
            principal.user.text, principal.guestColumn, principal.roomColumn, number,
        ]
        try run("DELETE FROM events WHERE user = ? AND guest = ? AND room = ? AND sequence <= ?", key)
        try run(
            """
            INSERT INTO streams (user, guest, room, forgotten) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET forgotten = max(forgotten, ?4)
            """, key)
        try run("DELETE FROM outdated_events WHERE user = ? AND guest = ? AND room = ? AND sequence <= ?", key)
    }

    private func pruneEvents(before: Int64) throws {
        // The newest of those for all devices counts for each of them.
        try run(
            """
            INSERT INTO streams (user, guest, room, forgotten)
            SELECT user, guest, room, max(sequence) FROM events WHERE at_ms < ? AND for_all GROUP BY user, guest, room
            ON CONFLICT DO UPDATE SET forgotten = max(forgotten, excluded.forgotten)
            """, [before])
        try run(
            """
            INSERT INTO outdated_events (user, guest, room, device, except_device, sequence)
            SELECT user, guest, room, coalesce(device, ''), coalesce(except_device, ''), max(sequence) FROM events
            WHERE at_ms < ? AND NOT for_all
            GROUP BY user, guest, room, coalesce(device, ''), coalesce(except_device, '')
            ON CONFLICT DO UPDATE SET sequence = max(sequence, excluded.sequence)
            """, [before])
        try run("DELETE FROM events WHERE at_ms < ?", [before])
    }
}

/// Pushes that are to be made, and those that could not be.
extension ChangeWriter {
    private func write(_ push: StoredPush) throws {
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
                push.reason.map(StoredText.encode),
                times.milliseconds(push.deadline), times.milliseconds(push.expires), times.milliseconds(push.due),
                push.attempts, push.isSettled,
            ])
    }

    private func write(_ push: DeadPush, at: Instant) throws {
        try run(
            """
            INSERT INTO dead_pushes (id, invite, user, device, kind, message, reason, detail, attempts, died_ms)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                push.id.text, push.invite.text, push.user.text, push.device.text, push.kind.text, push.message,
                push.reason.rawValue,
                push.detail.map(StoredText.encode), push.attempts, recordTimes.milliseconds(at),
            ])
        try run(
            "DELETE FROM dead_pushes WHERE rowid <= (SELECT max(rowid) FROM dead_pushes) - ?", [DeadPush.capacity])
    }
}

/// Call records that one transaction removes: some hundred, because removing a million takes 25 s, in which the exchange
/// answers no request.
final class RecordRemoval {
    static let rowsPerCommit = 500

    let limits: RecordLimits
    /// Records from before this time are removed: milliseconds since 1970. `nil` if there are none.
    var outdated: Int64?
    private(set) var rowsLeft = rowsPerCommit

    /// - Parameter outdated: What earlier transactions have left.
    init(_ limits: RecordLimits, outdated: Int64?) {
        self.limits = limits
        self.outdated = outdated
    }

    /// How many of `rows` may be removed. At least one, so that each new record can replace an old one.
    func take(_ rows: Int) -> Int {
        let taken = min(rows, max(1, rowsLeft))
        rowsLeft -= min(taken, rowsLeft)
        return taken
    }
}
