import SignalWire
import Core

/// To disk and back.
extension InviteRecord {
    /// The record to store on disk.
    func stored(key: IdempotencyKey?, forgottenAt: Instant?) -> StoredInvite {
        var stored = StoredInvite(
            id: id, inviter: inviter.user, inviterDevice: inviter.device, group: group,
            invitees: invitees.compactMap { user in
                state(of: user).map { StoredInvite.Invitee(user: user, state: $0.stored, device: $0.device) }
            }, idempotencyKey: key, ttlSeconds: ttlSeconds, sentAt: sentAt, deadline: deadline,
            forgottenAt: forgottenAt, isOnlineOnly: isOnlineOnly)
        stored.data = data
        stored.payload = payload
        stored.timeoutPayload = timeoutPayload
        return stored
    }

    /// What an input meant for the records of the invite's calls; an accept is recorded with the call.
    func steps(since before: InviteRecord?, at now: Instant) -> [CallStep] {
        // Who was struck off the invite is in the earlier one alone.
        let struck = (before?.invitees ?? []).filter { state(of: $0) == nil }
        return (invitees + struck).compactMap { user in
            let kind: CallStep.Kind
            switch (before?.state(of: user), state(of: user)) {
            case (nil, _?): kind = .rang(inviter: inviter.user, inviterDevice: inviter.device, group: group)
            case (.pending?, .timedOut?), (.pending?, nil): kind = .ended(reason: "noAnswer", durationMilliseconds: 0)
            case (.pending?, .cancelled?): kind = .ended(reason: "cancelled", durationMilliseconds: 0)
            case (_?, .pending?), (_?, .accepted?), (_?, .rejected?), (_?, .timedOut?), (_?, .cancelled?),
                (.accepted?, nil), (.rejected?, nil), (.timedOut?, nil), (.cancelled?, nil), (nil, nil):
                return nil
            }
            return CallStep(invite: id, invitee: user, kind: kind, at: now)
        }
    }
}

extension InviteeState {
    /// The word for it on disk.
    var stored: StoredInvite.Invitee.State {
        switch self {
        case .pending: .pending
        case .accepted: .accepted
        case .rejected: .rejected
        case .timedOut: .timedOut
        case .cancelled: .cancelled
        }
    }

    /// The device that answered.
    var device: DeviceID? {
        switch self {
        case .accepted(let device), .rejected(let device): device
        case .pending, .timedOut, .cancelled: nil
        }
    }

    init(_ stored: StoredInvite.Invitee) {
        self =
            switch stored.state {
            case .pending: .pending
            // An answer always has a device; a stored answer without one is invalid, and restored as cancelled.
            case .accepted: stored.device.map { .accepted(by: $0) } ?? .cancelled
            case .rejected: stored.device.map { .rejected(by: $0) } ?? .cancelled
            case .timedOut: .timedOut
            case .cancelled: .cancelled
            }
    }
}
