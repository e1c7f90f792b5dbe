internal import ExchangeCore
import SignalWire
import Core

/// Reads what an exchange left.
struct SavedReader<Source: RowSource> {
    let database: Source
    let times: TimeMap
    /// The latest possible time of a stored occurrence; later times, of a clock that was set, are reduced to it.
    let now: Instant

    func read() throws -> Saved {
        var saved = Saved()
        let exchange = try rows("SELECT runs, file_users_known FROM exchange").first
        saved.run = UInt64(clamping: try exchange?.decode(Int64.self, forColumn: "runs") ?? 1)
        saved.tokens = try database.values(of: .tokens, token)
        saved.logins = try database.values(of: .logins) { row in
            StoredLogin(
                id: try row.decode(forColumn: "id"), issuer: try row.decode(forColumn: "issuer"),
                family: try row.decode(forColumn: "family"),
                newest: UInt64(clamping: try row.decode(Int64.self, forColumn: "newest")),
                reached: UInt64(clamping: try row.decode(Int64.self, forColumn: "reached")),
                used: try row.decode(Int64?.self, forColumn: "used_ms").map(past))
        }
        saved.sessions = try database.values(of: .sessions, session)
        saved.invites = try database.values(of: .invites, invite)
        saved.groups = try database.values(of: .groups) { row in
            StoredGroup(
                id: try row.identifier("id"), name: try row.decode(forColumn: "name"),
                owner: try row.identifier("owner"),
                members: try StoreCoding.value([UserID].self, try row.decode(forColumn: "members")))
        }
        saved.pushTargets = try database.values(of: .pushTargets) { row in
            StoredPushTargets(
                user: try row.identifier("user"), device: try row.identifier("device"),
                targets: try StoreCoding.value(
                    [DeviceRegister.PushTarget].self, try row.decode(forColumn: "targets")))
        }
        let added = try database.values(of: .users) { row in
            let user: UserID = try row.identifier("id")
            return (user, try row.decode(Int64.self, forColumn: "added"))
        }
        for (user, time) in added { saved.added[user] = time }
        if try exchange?.decode(Bool.self, forColumn: "file_users_known") == true {
            saved.fileUsers = Set(try database.values(of: .fileUsers) { try $0.identifier("id") })
        }
        saved.acquaintances = try database.values(of: .acquaintances) { row in
            StoredAcquaintance(
                owner: try row.identifier("owner"), user: try row.identifier("user"),
                used: past(try row.decode(forColumn: "used_ms")))
        }
        saved.pendingPushes = try database.values(of: .pushes, push).compactMap(\.self)
        saved.calls = try database.values(of: .calls) { row in
            StoredCall(
                invite: try row.identifier("invite"), inviter: try row.identifier("inviter"),
                inviterDevice: try row.identifier("inviter_device"), invitee: try row.identifier("invitee"),
                inviteeDevice: try row.identifier("invitee_device"),
                acceptedAt: past(try row.decode(forColumn: "accepted_ms")))
        }
        saved.streams = try streams()
        saved.events = try events()
        saved.letters = try database.values(of: .letters) { row in
            Letter(
                from: try shard("sender", row), to: try shard("receiver", row),
                number: UInt64(clamping: try row.decode(Int64.self, forColumn: "number")),
                body: try KeptJSON(text: try row.decode(forColumn: "body")))
        }
        saved.letterMarks = try database.values(of: .letterMarks) { row in
            StoredLetterMarks(
                shard: try shard("shard", row), peer: try shard("peer", row),
                acknowledged: UInt64(clamping: try row.decode(Int64.self, forColumn: "acknowledged")),
                consumed: UInt64(clamping: try row.decode(Int64.self, forColumn: "consumed")),
                peerEpoch: try row.decode(String?.self, forColumn: "peer_epoch").map(epoch))
        }
        return saved
    }

    private func shard(_ column: String, _ row: Source.Row) throws -> Shard {
        guard let shard = Shard(try row.decode(Int.self, forColumn: column)) else { throw MissingValue(column: column) }
        return shard
    }

    private func epoch(_ text: String) throws -> OwnerEpoch {
        guard let epoch = OwnerEpoch(text) else { throw MissingValue(column: "peer_epoch") }
        return epoch
    }

    private func push(_ row: Source.Row) throws -> StoredPush? {
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

    private func streams() throws -> [Saved.Stream] {
        var streams: [Principal: Saved.Stream] = [:]
        let reserved = try database.values(of: .streams) { row in
            Saved.Stream(
                principal: try row.principal(),
                reserved: UInt64(clamping: try row.decode(Int64.self, forColumn: "reserved")),
                forgotten: UInt64(clamping: try row.decode(Int64.self, forColumn: "forgotten")))
        }
        for stream in reserved { streams[stream.principal] = stream }
        let outdated = try database.values(of: .outdatedEvents) { row in
            (
                try row.principal(), try audience(ofOutdated: row),
                UInt64(clamping: try row.decode(Int64.self, forColumn: "sequence"))
            )
        }
        for (principal, audience, sequence) in outdated {
            streams[principal, default: .init(principal: principal, reserved: 0, forgotten: 0)].outdated[audience] =
                sequence
        }
        return Array(streams.values)
    }

    private func audience(ofOutdated row: Source.Row) throws -> StoredEvent.Audience {
        func device(_ column: String) throws -> DeviceID? {
            try row.decode(String.self, forColumn: column).isEmpty ? nil : try row.identifier(column)
        }
        if let only = try device("device") { return .device(only) }
        return .registered(except: try device("except_device"))
    }

    /// A body that several events have is read once, and they share it.
    private func events() throws -> [StoredEvent] {
        var last: UInt64 = 0
        func body(_ text: String) -> EventBody {
            last += 1
            return EventBody(number: last, text: EventText(kept: text))
        }
        let texts = try database.values(of: .eventBodies) { row in
            (try row.decode(Int64.self, forColumn: "id"), try row.decode(String.self, forColumn: "text"))
        }
        let bodies = Dictionary(texts.map { ($0.0, body($0.1)) }) { first, _ in first }
        return try database.values(of: .events, event).map { row in
            StoredEvent(
                principal: row.principal, sequence: row.sequence,
                body: try row.shared.flatMap { bodies[$0] } ?? body(row.ownText()), audience: row.audience, at: row.at)
        }
    }

    /// An event whose body may be another table's.
    private struct EventRow {
        var principal: Principal
        var sequence: UInt64
        var shared: Int64?
        var text: String?
        var audience: StoredEvent.Audience
        var at: Instant

        func ownText() throws -> String {
            guard let text else { throw MissingValue(column: "body") }
            return text
        }
    }

    private func rows(_ sql: String) throws -> [Source.Row] { try database.rows(sql) }

    private func past(_ milliseconds: Int64) -> Instant { min(times.instant(milliseconds), now) }

    private func token(_ row: Source.Row) throws -> StoredToken {
        StoredToken(
            digest: try row.decode(forColumn: "digest"), user: try user(row),
            isAnonymous: try row.decode(forColumn: "anonymous"),
            expires: times.instant(try row.decode(Int64.self, forColumn: "expires_ms")),
            login: try row.decode(forColumn: "login"), isRefresh: try row.decode(forColumn: "refresh"),
            application: try row.optionalIdentifier("application"), scope: try place(row),
            generation: UInt64(clamping: try row.decode(Int64.self, forColumn: "generation")),
            superseded: try row.decode(Int64?.self, forColumn: "superseded_ms").map(past),
            isRevoked: try row.decode(forColumn: "revoked"),
            forgotten: times.instant(try row.decode(Int64.self, forColumn: "forgotten_ms")),
            epoch: try row.decode(forColumn: "epoch"))
    }

    /// The column is empty for a token whose login is unknown.
    private func user(_ row: Source.Row) throws -> UserID? {
        try row.decode(String.self, forColumn: "user").isEmpty ? nil : row.identifier("user")
    }

    private func place(_ row: Source.Row) throws -> StoredPlace? {
        try row.decode(String?.self, forColumn: "scope").map { try StoreCoding.value(StoredPlace.self, $0) }
    }

    private func session(_ row: Source.Row) throws -> StoredSession {
        StoredSession(
            id: try row.identifier("id"), principal: try row.principal(), device: try row.identifier("device"),
            isRegistered: try row.decode(forColumn: "registered"), connection: try row.identifier("connection"),
            scope: try place(row), login: try row.decode(forColumn: "login"),
            places: try StoreCoding.value([StoredPlace].self, try row.decode(forColumn: "places")),
            resumableUntil: times.instant(try row.decode(Int64?.self, forColumn: "resumable_until_ms")),
            isMissed: try row.decode(forColumn: "missed"))
    }

    private func invite(_ row: Source.Row) throws -> StoredInvite {
        var invite = StoredInvite(
            id: try row.identifier("id"), inviter: try row.identifier("inviter"),
            inviterDevice: try row.identifier("inviter_device"), group: try row.optionalIdentifier("group_id"),
            invitees: try StoreCoding.value([StoredInvite.Invitee].self, try row.decode(forColumn: "invitees")),
            idempotencyKey: try row.optionalIdentifier("idempotency_key"),
            ttlSeconds: try row.decode(forColumn: "ttl_s"),
            sentAt: past(try row.decode(forColumn: "sent_ms")),
            deadline: times.instant(try row.decode(Int64?.self, forColumn: "deadline_ms")),
            forgottenAt: times.instant(try row.decode(Int64?.self, forColumn: "forgotten_ms")),
            isOnlineOnly: try row.decode(forColumn: "online_only"))
        invite.data = try kept("data", row)
        invite.payload = try kept("payload", row)
        invite.timeoutPayload = try kept("timeout_payload", row)
        return invite
    }

    private func kept(_ column: String, _ row: Source.Row) throws -> KeptJSON? {
        try row.decode(String?.self, forColumn: column).map { try KeptJSON(text: $0) }
    }

    private func event(_ row: Source.Row) throws -> EventRow {
        let device: DeviceID? = try row.optionalIdentifier("device")
        let isForAll = try row.decode(Bool.self, forColumn: "for_all")
        return EventRow(
            principal: try row.principal(),
            sequence: UInt64(clamping: try row.decode(Int64.self, forColumn: "sequence")),
            shared: try row.decode(forColumn: "shared"), text: try row.text("body"),
            audience: try isForAll
                ? .every : device.map { .device($0) } ?? .registered(except: row.optionalIdentifier("except_device")),
            at: past(try row.decode(forColumn: "at_ms")))
    }
}
