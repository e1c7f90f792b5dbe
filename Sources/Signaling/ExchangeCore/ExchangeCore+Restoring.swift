import SignalWire
package import Timekeeping

/// Going on where an earlier run was cut off.
extension ExchangeCore {
    /// Takes in what is on disk. For a core that has been given nothing yet; what is overdue is due at once (INV-16).
    ///
    /// No time that remains is longer than the whole time, so that a clock set back meanwhile holds nothing up for more
    /// than that.
    package mutating func restore(_ saved: Saved, at now: Instant) {
        let logins = Dictionary(saved.logins.map { ($0.id, $0) }) { first, _ in first }
        for token in saved.tokens.sorted(by: { $0.expires < $1.expires }) {
            restore(token, logins[token.login], at: now)
        }
        if tokens.count > 0 { expectSweep(at: now) }
        for session in saved.sessions { restore(session, at: now) }
        for group in saved.groups {
            groups.restore(Group(group))
            miss(group.members, at: now)
        }
        for entry in saved.pushTargets {
            miss([entry.user], at: now)
            pushes.restore(entry.targets, for: Endpoint(user: entry.user, device: entry.device))
        }
        for invite in saved.invites { restore(invite, at: now) }
        restore(saved.acquaintances)
        for push in saved.pendingPushes { restore(push, at: now) }
        for call in saved.calls {
            calls.restore(Call(call))
            let id = CallKey(invite: call.invite, invitee: call.invitee)
            // Nobody could come back while the exchange was down, however long that was.
            deadlines.add(.callMayBeOrphaned(id), due: now.advanced(by: settings.resumeWindow))
            miss([call.inviter, call.invitee], at: now)
        }
        for stream in saved.streams {
            logs[stream.principal] = EventLog(stream)
        }
        for event in saved.events {
            logs[event.principal, default: EventLog()].restore(event)
        }
        lastBody = saved.events.map(\.body.number).max() ?? 0
        for principal in logs.keys { planExpiry(of: principal, at: now) }
        for principal in logs.keys where !isThere(principal) {
            logs[principal] = nil
            gone.append(principal)
        }
        if !saved.events.isEmpty || !saved.invites.isEmpty { planPruning(at: now) }
        settleAll()
    }

    /// Whether anybody may still come back for what was told.
    private func isThere(_ principal: Principal) -> Bool {
        principal.kind == .account ? accounts.account(id: principal.user) != nil : sessions.has(principal)
    }

    private mutating func restore(_ token: StoredToken, _ login: StoredLogin?, at now: Instant) {
        guard let digest = SecretDigest(hex: token.digest) else { return }
        let lifetimes = [settings.tokenLifetime, settings.refreshLifetime, settings.signedTokenLifetime]
        let lifetime = token.isRefresh ? settings.refreshLifetime : lifetimes.max() ?? settings.tokenLifetime
        let expires = min(token.expires, now.advanced(by: lifetime))
        let afterlife = token.isRevoked ? TokenStore.signedAfterlife : TokenStore.afterlife
        let entry = TokenStore.Entry(
            login: SecretDigest(hex: token.login) ?? digest, use: token.isRefresh ? .refresh : .access,
            expires: expires, generation: token.generation, superseded: token.superseded.map { min($0, now) },
            forgotten: min(token.forgotten, expires.advanced(by: afterlife)))
        // Of tokens that an earlier version took back it is not known whose they were: they are nobody's.
        let user = token.user ?? UserID(ours: "nobody-\(digest.hex)")
        // Who was removed, or whose logins were taken back, while the exchange was down is logged out.
        let account = accounts.account(id: user)
        let isOver =
            account?.loginsSince != token.epoch || (account == nil && !token.isAnonymous && token.scope == nil)
        let room = token.scope.flatMap { Grant.RoomGrant($0) }
        let grant = Grant(
            user: user, isAnonymous: token.isAnonymous, room: room, application: token.application)
        tokens.restore(
            digest, entry, Login(login, grant, epoch: token.epoch, isEnded: isOver || token.isRevoked, at: now))
    }

    /// Who was removed while the exchange was down is known to nobody any more.
    private mutating func restore(_ stored: [StoredAcquaintance]) {
        var gone: Set<UserID> = []
        for entry in stored {
            let strangers = [entry.owner, entry.user].filter { accounts.account(id: $0) == nil }
            gone.formUnion(strangers)
            if strangers.isEmpty { acquaintances.restore(entry) }
        }
        for user in gone { acquaintances.forget(user) }
        acquaintances.trim()
    }

    /// A session that had its connection when the exchange went away loses it now, as far as anybody knows. When its window
    /// ends goes to disk with the next input, so that further restarts do not extend it.
    private mutating func restore(_ stored: StoredSession, at now: Instant) {
        let whole = now.advanced(by: settings.resumeWindow)
        let until = min(stored.resumableUntil ?? whole, whole)
        let session = Session(stored)
        // Its login was ended while the exchange was down: so is the session.
        if let login = session.login, !tokens.isStanding(login) { return sessions.forget(session.id) }
        // Of a drop that the earlier run did not see its peers have not heard.
        sessions.restore(session, until: until, isMissed: stored.isMissed)
        if stored.resumableUntil != until { sessions.note(session) }
        noteLogins(of: session.endpoint.principal)
        for place in stored.places {
            let participant = RoomJoin.Participant(
                connection: session.name, user: stored.principal.user,
                role: place.role.flatMap(RoomRole.init(rawValue:)),
                data: place.data)
            rooms.join(
                place.room, Occupant(session: session.id, endpoint: session.endpoint, participant: participant))
        }
        deadlines.add(.sessionIsForgotten(session.id), due: until)
    }

    /// No push is waited for longer than the longest life, whatever was done to the clock.
    private mutating func restore(_ stored: StoredPush, at now: Instant) {
        let whole = now.advanced(by: settings.push.life)
        var push = stored
        push.expires = min(stored.expires, whole)
        push.due = min(stored.due, push.expires)
        pushQueue.restore(push, at: now)
    }

    /// Who of them was removed while the exchange was down is dealt with as soon as it runs.
    private mutating func miss(_ users: [UserID], at now: Instant) {
        for user in users where accounts.account(id: user) == nil { deadlines.add(.accountIsMissed(user), due: now) }
    }

    private mutating func restore(_ invite: StoredInvite, at now: Instant) {
        lastInvite += 1
        var record = InviteRecord(invite, number: lastInvite, at: now)
        if record.isEnded { record.shed() }
        invites.restore(record, for: record.id)
        if let key = invite.idempotencyKey.map({ InviteKey(user: invite.inviter, key: $0) }) {
            if accounts.account(id: key.user) != nil {
                inviteByKey[key] = record.id
                keyByInvite[record.id] = key
            } else {
                // Who is given the name of a removed user is not given its key, after this restart or another.
                invites.note(record.id)
            }
        }
        if record.isEnded {
            _ = endedInvites.add(record.id, of: record.inviter.user, limit: .max)
            let whole = now.advanced(by: settings.inviteMemory)
            deadlines.add(.inviteIsForgotten(record.id), due: min(invite.forgottenAt ?? whole, whole))
        } else {
            openInvites.add(record)
            invitePlaces.take(record)
            miss([record.inviter.user] + record.invitees, at: now)
            if let deadline = record.deadline { deadlines.add(.inviteTimesOut(record.id), due: deadline) }
        }
    }
}

extension Session {
    /// One that was kept on disk. It has no connection; number 0 is none.
    init(_ stored: StoredSession) {
        self.init(
            id: stored.id, name: stored.connection, connection: ConnectionID(number: 0),
            endpoint: Endpoint(stored.principal, stored.device),
            room: stored.scope.flatMap { Grant.RoomGrant($0) }, login: stored.login.flatMap { SecretDigest(hex: $0) },
            isRegistered: stored.isRegistered,
            device: DeviceDescription(id: stored.device, name: stored.device.text))
    }
}

extension Grant.RoomGrant {
    /// One that was kept on disk; `nil` without a role, which a session token always has.
    init?(_ stored: StoredPlace) {
        guard let role = stored.role.flatMap(RoomRole.init(rawValue:)) else { return nil }
        self.init(room: stored.room, role: role, data: stored.data)
    }
}

extension Group {
    init(_ stored: StoredGroup) {
        self.init(id: stored.id, name: stored.name, owner: stored.owner, members: stored.members)
    }
}
