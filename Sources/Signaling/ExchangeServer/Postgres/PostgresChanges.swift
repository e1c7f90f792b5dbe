internal import ExchangeCore
import JSON
import SignalWire
import Core

/// Turns changes into statements for PostgreSQL: each sets a state, so that one that is run twice does no harm.
struct PostgresChanges {
    /// For all times: those of the database's clock.
    private let times: TimeMap
    private let limits: RecordLimits
    /// How many events of these changes have a body, by its number.
    private var uses: [UInt64: Int] = [:]
    /// The rows of shared bodies that are written.
    private var rows: [UInt64: Int64] = [:]
    /// The row of the next shared body.
    private(set) var nextBody: Int64
    private(set) var statements: [PostgresStatement] = []
    /// The oldest time, in milliseconds since 1970, of records that are kept from now on, if that changes.
    private(set) var recordsBefore: Int64?

    /// - Parameter nextBody: A number that no stored body has, nor any above it.
    init(_ changes: [Change], times: TimeMap, limits: RecordLimits, nextBody: Int64) throws {
        self.times = times
        self.limits = limits
        self.nextBody = nextBody
        for case .event(let event) in changes { uses[event.body.number, default: 0] += 1 }
        for change in changes { try add(change) }
    }

    private mutating func run(_ sql: String, _ values: [(any PostgresValue)?]) {
        statements.append(PostgresStatement(sql, values.map { $0?.stored }))
    }

    private mutating func add(_ change: Change) throws {
        switch change {
        case .token(let token): try add(token)
        case .tokenForgotten(let digest): run("DELETE FROM tokens WHERE digest = $1", [digest])
        case .login(let login): add(login)
        case .loginForgotten(let id): run("DELETE FROM logins WHERE id = $1", [id])
        case .session(let session): try add(session)
        case .sessionForgotten(let id): run("DELETE FROM sessions WHERE id = $1", [id.text])
        case .invite(let invite): try add(invite)
        case .inviteForgotten(let id): run("DELETE FROM invites WHERE id = $1", [id.text])
        case .group(let group): try add(group)
        case .groupForgotten(let id): run("DELETE FROM groups WHERE id = $1", [id.text])
        case .pushTargets(let entry): try add(entry)
        case .push(let push): try add(push)
        case .pushForgotten(let id): run("DELETE FROM pushes WHERE id = $1", [id.text])
        case .pushDied(let push, let at): add(push, at: at)
        case .deadPushesPruned(let before):
            run("DELETE FROM dead_pushes WHERE died_ms < $1", [times.milliseconds(before)])
        case .userAdded(let user, let added):
            run(
                "INSERT INTO users (id, added) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET added = excluded.added",
                [user.text, added])
        case .userForgotten(let user): run("DELETE FROM users WHERE id = $1", [user.text])
        case .fileUsers(let users): try add(fileUsers: users)
        case .acquaintance(let entry):
            run(
                """
                INSERT INTO acquaintances (owner, "user", used_ms) VALUES ($1, $2, $3)
                ON CONFLICT (owner, "user") DO UPDATE SET used_ms = excluded.used_ms
                """, [entry.owner.text, entry.user.text, times.milliseconds(entry.used)])
        case .acquaintanceForgotten(let owner, let user):
            run("DELETE FROM acquaintances WHERE owner = $1 AND \"user\" = $2", [owner.text, user.text])
        case .acquaintancesForgotten(let user):
            run("DELETE FROM acquaintances WHERE owner = $1 OR \"user\" = $1", [user.text])
        case .call(let call): add(call)
        case .callForgotten(let invite, let invitee):
            run("DELETE FROM calls WHERE invite = $1 AND invitee = $2", [invite.text, invitee.text])
        case .event(let event): add(event)
        case .sequenceReserved(let principal, let number): reserve(principal, upTo: number)
        case .eventsForgotten(let principal, let number): forget(principal, upTo: number)
        case .streamForgotten(let principal):
            for table in ["events", "streams", "outdated_events"] {
                run("DELETE FROM \(table) WHERE \"user\" = $1 AND guest = $2 AND room = $3", principal.key)
            }
        case .record(let step): add(step)
        case .pruned(let eventsBefore, let recordsBefore):
            pruneEvents(before: times.milliseconds(eventsBefore))
            self.recordsBefore = times.milliseconds(recordsBefore)
        case .eventsPruned(let before): pruneEvents(before: times.milliseconds(before))
        case .letter(let letter):
            run(
                """
                INSERT INTO letters (sender, receiver, number, body) VALUES ($1, $2, $3, $4)
                ON CONFLICT (sender, receiver, number) DO UPDATE SET body = excluded.body
                """,
                [Int64(letter.from.number), Int64(letter.to.number), Int64(clamping: letter.number), letter.body.text])
        case .lettersForgotten(let sender, let receiver, let number):
            run(
                "DELETE FROM letters WHERE sender = $1 AND receiver = $2 AND number <= $3",
                [Int64(sender.number), Int64(receiver.number), Int64(clamping: number)])
        case .letterMarks(let marks):
            run(
                """
                INSERT INTO letter_marks (shard, peer, acknowledged, consumed, peer_epoch) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (shard, peer) DO UPDATE SET acknowledged = excluded.acknowledged,
                    consumed = excluded.consumed, peer_epoch = excluded.peer_epoch
                """,
                [
                    Int64(marks.shard.number), Int64(marks.peer.number), Int64(clamping: marks.acknowledged),
                    Int64(clamping: marks.consumed), marks.peerEpoch?.description,
                ])
        }
    }

    private mutating func add(_ token: StoredToken) throws {
        run(
            """
            INSERT INTO tokens (
                digest, login, refresh, "user", anonymous, application, scope, generation, superseded_ms, revoked,
                expires_ms, forgotten_ms, epoch
            ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
            ON CONFLICT (digest) DO UPDATE SET login = excluded.login, refresh = excluded.refresh,
                "user" = excluded."user", anonymous = excluded.anonymous, application = excluded.application,
                scope = excluded.scope, generation = excluded.generation, superseded_ms = excluded.superseded_ms,
                revoked = excluded.revoked, expires_ms = excluded.expires_ms, forgotten_ms = excluded.forgotten_ms,
                epoch = excluded.epoch
            """,
            [
                token.digest, token.login, token.isRefresh, token.user?.text ?? "", token.isAnonymous,
                token.application?.text, try token.scope.map { try StoreCoding.text($0) },
                Int64(clamping: token.generation), times.milliseconds(token.superseded), token.isRevoked,
                times.milliseconds(token.expires), times.milliseconds(token.forgotten), token.epoch,
            ])
    }

    private mutating func add(_ login: StoredLogin) {
        run(
            """
            INSERT INTO logins (id, issuer, family, newest, reached, used_ms) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (id) DO UPDATE SET issuer = excluded.issuer, family = excluded.family, newest = excluded.newest,
                reached = excluded.reached, used_ms = excluded.used_ms
            """,
            [
                login.id, login.issuer, login.family, Int64(clamping: login.newest), Int64(clamping: login.reached),
                times.milliseconds(login.used),
            ])
    }

    /// A session keeps its position among the others.
    private mutating func add(_ session: StoredSession) throws {
        run(
            """
            INSERT INTO sessions (
                id, "user", guest, room, device, registered, connection, scope, login, places, resumable_until_ms, missed
            ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            ON CONFLICT (id) DO UPDATE SET registered = excluded.registered, scope = excluded.scope,
                login = excluded.login, places = excluded.places, resumable_until_ms = excluded.resumable_until_ms,
                missed = excluded.missed
            """,
            [session.id.text] + session.principal.key + [
                session.device.text, session.isRegistered, session.connection.text,
                try session.scope.map { try StoreCoding.text($0) }, session.login,
                try StoreCoding.text(session.places), times.milliseconds(session.resumableUntil), session.isMissed,
            ])
    }

    /// A group keeps its position among the others.
    private mutating func add(_ group: StoredGroup) throws {
        run(
            """
            INSERT INTO groups (id, name, owner, members) VALUES ($1, $2, $3, $4)
            ON CONFLICT (id) DO UPDATE SET name = excluded.name, owner = excluded.owner, members = excluded.members
            """, [group.id.text, group.name, group.owner.text, try StoreCoding.text(group.members)])
    }

    /// What is set last comes last.
    private mutating func add(_ entry: StoredPushTargets) throws {
        guard !entry.targets.isEmpty else {
            return run(
                "DELETE FROM push_targets WHERE \"user\" = $1 AND device = $2", [entry.user.text, entry.device.text])
        }
        run(
            """
            INSERT INTO push_targets ("user", device, targets) VALUES ($1, $2, $3)
            ON CONFLICT ("user", device) DO UPDATE SET targets = excluded.targets, rowid = excluded.rowid
            """, [entry.user.text, entry.device.text, try StoreCoding.text(entry.targets)])
    }

    private mutating func add(_ invite: StoredInvite) throws {
        run(
            """
            INSERT INTO invites (
                id, inviter, inviter_device, group_id, invitees, data, payload, timeout_payload, idempotency_key,
                ttl_s, sent_ms, deadline_ms, forgotten_ms, online_only
            ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
            ON CONFLICT (id) DO UPDATE SET group_id = excluded.group_id, invitees = excluded.invitees,
                data = excluded.data, payload = excluded.payload, timeout_payload = excluded.timeout_payload,
                idempotency_key = excluded.idempotency_key, forgotten_ms = excluded.forgotten_ms
            """,
            [
                invite.id.text, invite.inviter.text, invite.inviterDevice.text, invite.group?.text,
                try StoreCoding.text(invite.invitees), invite.data?.text, invite.payload?.text,
                invite.timeoutPayload?.text, invite.idempotencyKey?.text, invite.ttlSeconds,
                times.milliseconds(invite.sentAt), times.milliseconds(invite.deadline),
                times.milliseconds(invite.forgottenAt), invite.isOnlineOnly,
            ])
    }

    private mutating func add(_ call: StoredCall) {
        run(
            """
            INSERT INTO calls (invite, invitee, invitee_device, inviter, inviter_device, accepted_ms)
            VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (invite, invitee) DO UPDATE SET invitee_device = excluded.invitee_device,
                inviter = excluded.inviter, inviter_device = excluded.inviter_device, accepted_ms = excluded.accepted_ms
            """,
            [
                call.invite.text, call.invitee.text, call.inviteeDevice.text, call.inviter.text,
                call.inviterDevice.text, times.milliseconds(call.acceptedAt),
            ])
    }

    private mutating func add(_ step: CallStep) {
        let at = times.milliseconds(step.at)
        switch step.kind {
        case .rang(let inviter, let device, let group):
            run(
                "SELECT begin_record($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                [
                    step.invite.text, step.invitee.text, inviter.text, device.text, group?.text, at,
                    Int64(limits.perCaller), Int64(limits.total), Int64(RecordRemoval.rowsPerCommit),
                ])
        case .answered(let device):
            run(
                "UPDATE call_records SET answered_ms = $1, invitee_device = $2 WHERE invite = $3 AND invitee = $4",
                [at, device.text, step.invite.text, step.invitee.text])
        case .ended(let reason, let duration):
            // What ended a call first is why it ended.
            run(
                """
                UPDATE call_records SET ended_ms = $1, reason = $2, duration_ms = $3
                WHERE invite = $4 AND invitee = $5 AND ended_ms IS NULL
                """, [at, reason, duration, step.invite.text, step.invitee.text])
        }
    }

    /// Writes what differs: a file may have some fifty thousand users, of which one has changed.
    private mutating func add(fileUsers users: [UserID]) throws {
        let names = try StoreCoding.text(users)
        run(
            """
            DELETE FROM file_users WHERE id NOT IN (SELECT json_array_elements_text($1::json))
            """, [names])
        run(
            """
            INSERT INTO file_users (id) SELECT DISTINCT json_array_elements_text($1::json) ON CONFLICT DO NOTHING
            """, [names])
        run("UPDATE exchange SET file_users_known = true", [])
    }
}

/// Events, and how they are numbered.
extension PostgresChanges {
    private mutating func add(_ event: StoredEvent) {
        let (device, except, isForAll): (DeviceID?, DeviceID?, Bool) =
            switch event.audience {
            case .device(let device): (device, nil, false)
            case .registered(let except): (nil, except, false)
            case .every: (nil, nil, true)
            }
        let shared = row(of: event.body)
        run(
            """
            INSERT INTO events ("user", guest, room, sequence, body, shared, device, except_device, for_all, at_ms)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            ON CONFLICT ("user", guest, room, sequence) DO UPDATE SET body = excluded.body, shared = excluded.shared,
                device = excluded.device, except_device = excluded.except_device, for_all = excluded.for_all,
                at_ms = excluded.at_ms
            """,
            event.principal.key + [
                Int64(clamping: event.sequence), shared == nil ? event.body.text.text : "", shared, device?.text,
                except?.text, isForAll, times.milliseconds(event.at),
            ])
    }

    /// The row of a body that several events of these changes share; `nil` for one that is stored with its event.
    private mutating func row(of body: EventBody) -> Int64? {
        guard uses[body.number] ?? 0 > 1 else { return nil }
        if let row = rows[body.number] { return row }
        defer { nextBody += 1 }
        rows[body.number] = nextBody
        run("INSERT INTO event_bodies (id, text) VALUES ($1, $2)", [nextBody, body.text.text])
        return nextBody
    }

    private mutating func reserve(_ principal: Principal, upTo number: UInt64) {
        run(
            """
            INSERT INTO streams ("user", guest, room, reserved) VALUES ($1, $2, $3, $4)
            ON CONFLICT ("user", guest, room) DO UPDATE SET reserved = greatest(streams.reserved, excluded.reserved)
            """, principal.key + [Int64(clamping: number)])
    }

    private mutating func forget(_ principal: Principal, upTo number: UInt64) {
        let key = principal.key + [Int64(clamping: number)]
        run("DELETE FROM events WHERE \"user\" = $1 AND guest = $2 AND room = $3 AND sequence <= $4", key)
        run(
            """
            INSERT INTO streams ("user", guest, room, forgotten) VALUES ($1, $2, $3, $4)
            ON CONFLICT ("user", guest, room) DO UPDATE SET forgotten = greatest(streams.forgotten, excluded.forgotten)
            """, key)
        run("DELETE FROM outdated_events WHERE \"user\" = $1 AND guest = $2 AND room = $3 AND sequence <= $4", key)
    }

    private mutating func pruneEvents(before: Int64) {
        // The newest of those for all devices counts for each of them.
        run(
            """
            INSERT INTO streams ("user", guest, room, forgotten)
            SELECT "user", guest, room, max(sequence) FROM events WHERE at_ms < $1 AND for_all
            GROUP BY "user", guest, room
            ON CONFLICT ("user", guest, room) DO UPDATE SET forgotten = greatest(streams.forgotten, excluded.forgotten)
            """, [before])
        run(
            """
            INSERT INTO outdated_events ("user", guest, room, device, except_device, sequence)
            SELECT "user", guest, room, coalesce(device, ''), coalesce(except_device, ''), max(sequence) FROM events
            WHERE at_ms < $1 AND NOT for_all
            GROUP BY "user", guest, room, coalesce(device, ''), coalesce(except_device, '')
            ON CONFLICT ("user", guest, room, device, except_device)
            DO UPDATE SET sequence = greatest(outdated_events.sequence, excluded.sequence)
            """, [before])
        run("DELETE FROM events WHERE at_ms < $1", [before])
        run(
            """
            DELETE FROM event_bodies
            WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.shared = event_bodies.id)
            """, [])
    }
}

/// Pushes that are to be made, and those that could not be.
extension PostgresChanges {
    private mutating func add(_ push: StoredPush) throws {
        run(
            """
            INSERT INTO pushes (
                id, invite, "user", device, target, message, inviter, group_id, payload, reason, deadline_ms,
                expires_ms, due_ms, attempts, settled
            ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            ON CONFLICT (id) DO UPDATE SET due_ms = excluded.due_ms, attempts = excluded.attempts,
                settled = excluded.settled
            """,
            [
                push.id.text, push.invite.text, push.user.text, push.device.text, try StoreCoding.text(push.target),
                push.message.rawValue, push.inviter.text, push.group?.text, push.payload?.text, push.reason,
                times.milliseconds(push.deadline), times.milliseconds(push.expires), times.milliseconds(push.due),
                Int64(push.attempts), push.isSettled,
            ])
    }

    private mutating func add(_ push: DeadPush, at: Instant) {
        run(
            """
            INSERT INTO dead_pushes (id, invite, "user", device, kind, message, reason, detail, attempts, died_ms)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (id, message) DO NOTHING
            """,
            [
                push.id.text, push.invite.text, push.user.text, push.device.text, push.kind.text, push.message,
                push.reason.rawValue, push.detail, Int64(push.attempts), times.milliseconds(at),
            ])
        run(
            "DELETE FROM dead_pushes WHERE rowid <= (SELECT max(rowid) FROM dead_pushes) - $1::bigint",
            [Int64(DeadPush.capacity)])
    }
}

/// A value as PostgreSQL reads it.
protocol PostgresValue {
    var stored: String { get }
}

extension String: PostgresValue { var stored: String { StoredText.encode(self) } }
extension Int64: PostgresValue { var stored: String { String(self) } }
extension Double: PostgresValue { var stored: String { description } }
extension Bool: PostgresValue { var stored: String { self ? "t" : "f" } }

extension Principal {
    /// The values of the columns `user`, `guest` and `room`.
    fileprivate var key: [(any PostgresValue)?] { [user.text, guestColumn, roomColumn] }
}
