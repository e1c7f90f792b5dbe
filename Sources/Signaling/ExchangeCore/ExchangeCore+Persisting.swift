import JSON
import SignalWire
import Timekeeping

/// What must survive the process leaves the core as ``Output/persist(_:)``.
///
/// The containers remember what was changed in them, and ``recordChanges(at:into:)`` looks at them after each input; so
/// whoever changes an invite, a session, a call or a token need not think of the disk. Events are recorded as they are
/// numbered, and the ends of call records where their reasons are known.
extension ExchangeCore {
    /// Puts out what the input changed. The driver writes it before it does anything else that the input caused.
    mutating func recordChanges(at now: Instant, into outbox: inout [Output]) {
        for digest in tokens.takeChanges() {
            let stored = tokens.stored(digest)
            outbox.append(.persist(stored.map(Change.token) ?? .tokenForgotten(digest: digest.hex)))
        }
        for (id, stored) in tokens.takeLoginChanges() {
            outbox.append(.persist(stored.map(Change.login) ?? .loginForgotten(id.hex)))
        }
        for id in sessions.takeChanged() {
            let stored = stored(id)
            settle(id, stored)
            outbox.append(.persist(stored.map(Change.session) ?? .sessionForgotten(id)))
        }
        for principal in gone { outbox.append(.persist(.streamForgotten(principal))) }
        gone = []
        for id in groups.takeChanged() {
            settle(id)
            outbox.append(.persist(groups[id].map { .group($0.stored) } ?? .groupForgotten(id)))
        }
        for endpoint in pushes.takeChanged() {
            settle(endpoint)
            let targets = pushes.targets(of: endpoint)
            outbox.append(
                .persist(.pushTargets(.init(user: endpoint.user, device: endpoint.device, targets: targets))))
        }
        for (id, push) in pushQueue.takeChanges() {
            settle(id, push)
            outbox.append(.persist(push.map(Change.push) ?? .pushForgotten(id)))
        }
        for change in acquaintances.takeChanges() { outbox.append(.persist(change)) }
        for (id, before) in invites.takeChanges() {
            settle(id)
            guard let record = invites[id] else {
                outbox.append(.persist(.inviteForgotten(id)))
                continue
            }
            let forgottenAt = record.isEnded ? now.advanced(by: settings.inviteMemory) : nil
            let stored = record.stored(key: keyByInvite[id]?.key, forgottenAt: forgottenAt)
            outbox.append(.persist(.invite(stored)))
            for step in record.steps(since: before, at: now) { outbox.append(.persist(.record(step))) }
        }
        for change in calls.takeChanges() {
            switch change {
            case .began(let call):
                settle(call)
                outbox.append(.persist(.call(call.stored)))
                let kind = CallStep.Kind.answered(device: call.invitee.device)
                let step = CallStep(invite: call.invite, invitee: call.invitee.user, kind: kind, at: now)
                outbox.append(.persist(.record(step)))
            case .ended(let call):
                settle(call)
                outbox.append(.persist(.callForgotten(invite: call.invite, invitee: call.invitee.user)))
            }
        }
    }

    /// A session as it is kept on disk; `nil` if there is nothing of it that could be resumed.
    func stored(_ id: SessionID) -> StoredSession? {
        guard let session = sessions.session(id) else { return nil }
        let places = rooms.rooms(of: id).compactMap { room in
            rooms.occupant(id, in: room).map {
                StoredPlace(room: room, role: $0.participant.role?.rawValue, data: $0.participant.data)
            }
        }
        return StoredSession(
            id: id, principal: session.endpoint.principal, device: session.endpoint.device,
            isRegistered: session.isRegistered, connection: session.name,
            scope: session.room.map { StoredPlace(room: $0.room, role: $0.role.rawValue, data: $0.data) },
            login: session.login?.hex, places: places, resumableUntil: sessions.end(of: id),
            isMissed: sessions.isMissing(id))
    }

    /// Keeps how a call, or an attempt at one, ended (CALL-7).
    mutating func recordEnd(
        of invite: InviteID, with invitee: UserID, reason: String, duration: Int64, at now: Instant,
        into outbox: inout [Output]
    ) {
        let kind = CallStep.Kind.ended(reason: reason, durationMilliseconds: duration)
        outbox.append(.persist(.record(CallStep(invite: invite, invitee: invitee, kind: kind, at: now))))
        planPruning(at: now)
    }

    /// Looks at what is too old to be kept every ``Settings/pruningInterval``, for as long as anything is kept.
    mutating func planPruning(at now: Instant) {
        guard !isPruningPlanned else { return }
        isPruningPlanned = true
        deadlines.add(.pruningIsDue, due: now.advanced(by: settings.pruningInterval))
    }

    /// Drops events that nobody can resume with any more, and old call records.
    mutating func prune(at now: Instant, into outbox: inout [Output]) {
        isPruningPlanned = false
        let eventsBefore = now.advanced(by: .zero - settings.resumeWindow)
        let recordsBefore = now.advanced(by: .zero - settings.recordRetention)
        outbox.append(.persist(.pruned(eventsBefore: eventsBefore, recordsBefore: recordsBefore)))
        let deadBefore = now.advanced(by: .zero - settings.deadPushRetention)
        outbox.append(.persist(.deadPushesPruned(before: deadBefore)))
        if logs.values.contains(where: { $0.oldest != nil }) { planPruning(at: now) }
    }
}

extension Call {
    /// As it is kept on disk.
    var stored: StoredCall {
        StoredCall(
            invite: invite, inviter: inviter.user, inviterDevice: inviter.device, invitee: invitee.user,
            inviteeDevice: invitee.device, acceptedAt: acceptedAt)
    }

    init(_ stored: StoredCall) {
        self.init(
            invite: stored.invite, inviter: Endpoint(user: stored.inviter, device: stored.inviterDevice),
            invitee: Endpoint(user: stored.invitee, device: stored.inviteeDevice), acceptedAt: stored.acceptedAt)
    }
}

extension Audience {
    /// As it is kept on disk.
    var stored: StoredEvent.Audience {
        switch self {
        case .device(let device): .device(device)
        case .registered(let except): .registered(except: except)
        case .every: .every
        }
    }

    init(_ stored: StoredEvent.Audience) {
        switch stored {
        case .device(let device): self = .device(device)
        case .registered(let except): self = .registered(except: except)
        case .every: self = .every
        }
    }
}

extension Group {
    /// As it is kept on disk.
    var stored: StoredGroup { StoredGroup(id: id, name: name, owner: owner, members: members) }
}
