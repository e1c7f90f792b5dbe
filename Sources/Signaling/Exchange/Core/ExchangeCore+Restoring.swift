import ExchangeStore
import SignalWire
import Timekeeping

/// Going on where an earlier run was cut off.
extension ExchangeCore {
    /// Takes in what is on disk. For a core that has been given nothing yet; what is overdue is due at once (INV-16).
    ///
    /// No time that remains is longer than the whole time, so that a clock set back meanwhile holds nothing up for more
    /// than that.
    mutating func restore(_ saved: Saved, at now: Instant) {
        for token in saved.tokens { restore(token, at: now) }
        for session in saved.sessions { restore(session, at: now) }
        for invite in saved.invites { restore(invite, at: now) }
        for call in saved.calls {
            calls.restore(Call(call))
            deadlines.add(.callMayBeOrphaned(call.invite), due: now.advanced(by: settings.resumeWindow))
        }
        for stream in saved.streams {
            logs[stream.user] = EventLog(reserved: stream.reserved, forgotten: stream.forgotten)
        }
        for event in saved.events {
            logs[event.user, default: EventLog()].restore(event.numbered, for: Audience(event.audience), at: event.at)
        }
        if !saved.events.isEmpty || !saved.invites.isEmpty { planPruning(at: now) }
    }

    private mutating func restore(_ token: StoredToken, at now: Instant) {
        guard let digest = SecretDigest(hex: token.digest) else { return }
        let expires = min(token.expires, now.advanced(by: settings.tokenLifetime))
        tokens.restore(digest, Grant(user: token.user, isAnonymous: token.isAnonymous), expires: expires)
        deadlines.add(.tokenIsForgotten(digest), due: expires.advanced(by: TokenStore.afterlife))
    }

    /// A session that had its connection when the exchange went away lost it then, as far as anybody knows.
    private mutating func restore(_ session: StoredSession, at now: Instant) {
        let whole = now.advanced(by: settings.resumeWindow)
        let until = min(session.resumableUntil ?? whole, whole)
        sessions.restore(session, until: until)
        deadlines.add(.sessionIsForgotten(session.id), due: until)
    }

    private mutating func restore(_ invite: StoredInvite, at now: Instant) {
        let record = InviteRecord(invite, at: now)
        invites.restore(record, for: record.id)
        if let key = invite.idempotencyKey.map({ IdempotencyKey(user: invite.inviter, key: $0) }) {
            inviteByKey[key] = record.id
            keyByInvite[record.id] = key
        }
        if record.isEnded {
            let whole = now.advanced(by: settings.inviteMemory)
            deadlines.add(.inviteIsForgotten(record.id), due: min(invite.forgottenAt ?? whole, whole))
        } else {
            openInvites[invite.inviter, default: 0] += 1
            if let deadline = record.deadline { deadlines.add(.inviteTimesOut(record.id), due: deadline) }
        }
    }
}
