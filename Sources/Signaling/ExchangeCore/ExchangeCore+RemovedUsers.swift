import SignalWire
import Timekeeping

/// What is left of users whose account is gone: whoever is given the name next must find none of it.
extension ExchangeCore {
    /// Ends the invites of a user without an account, those to it, its calls, its part in groups, and its pushes.
    mutating func forgetRemoved(_ user: UserID, at now: Instant, into outbox: inout [Output]) {
        guard accounts.account(id: user) == nil else { return }
        forgetPushes(of: user)
        withdrawInvites(of: user, at: now, into: &outbox)
        freeKeys(of: user)
        strikeFromInvites(user, at: now, into: &outbox)
        hangUp(user, at: now, into: &outbox)
        actsFor = .account(user)
        leaveGroups(of: user, at: now, into: &outbox)
    }

    /// Ends the calls of the user's devices, of those as well that were away.
    private mutating func hangUp(_ user: UserID, at now: Instant, into outbox: inout [Output]) {
        for call in calls.all {
            for endpoint in [call.inviter, call.invitee] where endpoint.principal == .account(user) {
                actsFor = call.inviter.principal
                let duration = Int64(call.acceptedAt.duration(to: now).milliseconds)
                end(call, by: endpoint, reason: "disconnected", duration: duration, at: now, into: &outbox)
                break
            }
        }
    }

    /// Takes back the user's invites: nobody else could, and they hold places.
    private mutating func withdrawInvites(of user: UserID, at now: Instant, into outbox: inout [Output]) {
        actsFor = .account(user)
        for record in openInvites.sent(by: user).compactMap({ invites[$0] }) {
            withdraw(record, nil, at: now, into: &outbox)
        }
    }

    /// Frees the idempotency keys of the user's invites, all of which have ended: whoever is given the name sends invites
    /// of its own with them.
    private mutating func freeKeys(of user: UserID) {
        for id in endedInvites.sent(by: user) {
            guard let key = keyByInvite.removeValue(forKey: id) else { continue }
            inviteByKey[key] = nil
            invites.note(id)
        }
    }

    /// The user will answer no invite any more; of those that go on it is no invitee.
    private mutating func strikeFromInvites(_ user: UserID, at now: Instant, into outbox: inout [Output]) {
        for id in openInvites.received(by: user) {
            timeOutInvite(id, for: user, at: now, into: &outbox)
            guard var record = invites[id], !record.isEnded else { continue }
            openInvites.strike(user, from: record)
            record.strike(user)
            invites[id] = record
        }
    }
}
