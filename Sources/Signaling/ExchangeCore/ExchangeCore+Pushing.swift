import JSON
import SignalWire
import Timekeeping

/// Telling devices that are not connected (DEV-4).
extension ExchangeCore {
    /// Pushes an invite to those devices of users that are not connected and have push tokens.
    mutating func pushInvite(
        _ record: InviteRecord, to users: [UserID], at now: Instant, into outbox: inout [Output]
    ) {
        for user in users {
            for entry in pushes.entries(of: user) {
                let endpoint = Endpoint(user: user, device: entry.device)
                pushInvite(record, to: endpoint, entry.targets, at: now, into: &outbox)
            }
        }
    }

    /// A device that heard of invites may have lost its connection before it knew: a phone whose program was stopped.
    mutating func pushOpenInvites(to endpoint: Endpoint, at now: Instant, into outbox: inout [Output]) {
        let targets = pushes.targets(of: endpoint)
        guard !targets.isEmpty, !isGoingDown else { return }
        for record in openInvites.received(by: endpoint.user).compactMap({ invites[$0] })
        where record.state(of: endpoint.user) == .pending {
            pushInvite(record, to: endpoint, targets, at: now, into: &outbox)
        }
    }

    private mutating func pushInvite(
        _ record: InviteRecord, to endpoint: Endpoint, _ targets: [DeviceRegister.PushTarget], at now: Instant,
        into outbox: inout [Output]
    ) {
        guard !record.isOnlineOnly, isAbsent(endpoint),
            record.ringing(of: endpoint.user).includes(endpoint.device, isRegistered: true)
        else { return }
        let end = now.advanced(by: settings.push.life)
        for target in targets {
            var push = StoredPush(
                id: ids.next("push"), invite: record.id, user: endpoint.user, device: endpoint.device, target: target,
                message: .invite, inviter: record.inviter.user, group: record.group,
                deadline: record.deadline, expires: min(record.deadline ?? end, end), due: now)
            push.payload = record.payload
            queue(push, at: now, into: &outbox)
        }
    }

    /// Tells devices that are not connected that an invite is over for their users: those that may know of it from a
    /// push and, if there is a timeout payload for them, all (INV-4, INV-6, INV-7).
    ///
    /// - Parameter device: The one that answered, which knows.
    mutating func pushEnd(
        of record: InviteRecord, for users: [UserID], reason: String, by device: DeviceID? = nil,
        payload: KeptJSON? = nil, at now: Instant, into outbox: inout [Output]
    ) {
        for user in users {
            if reason == Self.timedOut {
                for push in pushQueue.untaken(record.id, of: user) {
                    deadLetter(push, .expired, nil, at: now, into: &outbox)
                }
            }
            var receivers = pushQueue.end(record.id, for: user).map { ($0.endpoint, $0.target) }
            if payload != nil, !record.isOnlineOnly {
                for entry in pushes.entries(of: user) {
                    let endpoint = Endpoint(user: user, device: entry.device)
                    guard record.ringing(of: user).includes(entry.device, isRegistered: true) else { continue }
                    for target in entry.targets where !receivers.contains(where: { $0 == (endpoint, target) }) {
                        receivers.append((endpoint, target))
                    }
                }
            }
            for (endpoint, target) in receivers where endpoint.device != device && isAbsent(endpoint) {
                var push = StoredPush(
                    id: ids.next("push"), invite: record.id, user: user, device: endpoint.device, target: target,
                    message: .ended, inviter: record.inviter.user, group: record.group, reason: reason,
                    deadline: record.deadline,
                    expires: lifeOfEnd(of: record, isMissedCall: payload != nil, at: now), due: now)
                push.payload = payload
                queue(push, at: now, into: &outbox)
            }
        }
    }

    static let timedOut = "timedOut"

    /// A missed call is news for long; a device that rings knows by itself when to stop.
    private func lifeOfEnd(of record: InviteRecord, isMissedCall: Bool, at now: Instant) -> Instant {
        let end = now.advanced(by: settings.push.life)
        if isMissedCall { return end }
        return min(max(record.deadline ?? end, now.advanced(by: .seconds(30))), end)
    }

    /// A device that receives no events now.
    private func isAbsent(_ endpoint: Endpoint) -> Bool {
        sessions.session(at: endpoint)?.isRegistered != true
    }

    /// Sets a device's push tokens; what was on its way by others is taken back (DEV-2).
    mutating func setPushTargets(_ targets: [DeviceRegister.PushTarget], for endpoint: Endpoint) {
        pushes.set(targets, for: endpoint)
        pushQueue.restrict(endpoint, to: targets)
    }

    /// A user without an account is called no more.
    mutating func forgetPushes(of user: UserID) {
        for entry in pushes.entries(of: user) {
            setPushTargets([], for: Endpoint(user: user, device: entry.device))
        }
    }

    /// Has a push made, if there is room to keep it; it is the inviter's, whoever caused it.
    private mutating func queue(_ push: StoredPush, at now: Instant, into outbox: inout [Output]) {
        guard ledger.hasRoom(for: Weight.of(push), of: .account(push.inviter), .sequel) else {
            return deadLetter(push, .overflow, nil, at: now, into: &outbox)
        }
        feedPushes(.add(push), at: now, into: &outbox)
        settle(push.id, pushQueue.push(push.id))
    }

    /// Gives the queue an input, and does what comes of it.
    mutating func feedPushes(_ input: PushQueue.Input, at now: Instant, into outbox: inout [Output]) {
        var made: [PushQueue.Output] = []
        pushQueue.handle(input, at: now, into: &made)
        for output in made {
            switch output {
            case .post(let push): outbox.append(.push(push))
            case .made(let push):
                count(\.pushes)
                outbox.append(.note(.pushMade(push.id, push.endpoint)))
            case .failed(let push, let detail, let wait):
                outbox.append(.note(.pushFailed(push.id, push.endpoint, detail: detail, wait: wait)))
            case .died(let push, let reason, let detail):
                deadLetter(push, reason, detail, at: now, into: &outbox)
                guard reason == .gone else { continue }
                let left = pushes.targets(of: push.endpoint).filter { $0 != push.target }
                setPushTargets(left, for: push.endpoint)
            }
        }
    }

    private mutating func deadLetter(
        _ push: StoredPush, _ reason: DeadPush.Reason, _ detail: String?, at now: Instant,
        into outbox: inout [Output]
    ) {
        count(\.deadPushes)
        let dead = DeadPush(push, reason, detail: detail)
        outbox.append(.persist(.pushDied(dead, at: now)))
        outbox.append(.note(.pushDied(dead)))
        planPruning(at: now)
    }
}
