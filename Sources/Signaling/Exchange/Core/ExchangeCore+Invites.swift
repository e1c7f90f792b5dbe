import JSON
import SignalWire
import Timekeeping

/// Sending, answering and ending invites.
extension ExchangeCore {
    mutating func sendInvite(
        _ params: InviteSend, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> InviteSend.Result {
        let inviter = session.endpoint
        try Self.check(params)
        let key = IdempotencyKey(user: inviter.user, key: params.idempotencyKey)
        if let known = inviteByKey[key].flatMap({ invites[$0] }) {
            return InviteSend.Result(invite: known.id, invitees: known.invitees)
        }
        guard let invitee = params.to.first.flatMap({ accounts.account(called: $0)?.id }) else {
            throw RPCError(.unknownUser, "Nobody here is called that.")
        }
        if params.onlineOnly == true {
            let isOnline = sessions.sessions(of: invitee).contains { $0.isRegistered && $0.endpoint != inviter }
            guard isOnline else { throw RPCError(.noDeviceOnline, "None of the user's devices is online.") }
        }
        guard openInvites[inviter.user, default: 0] < settings.openInvitesPerUser else {
            throw RPCError(.tooManyRequests, "This user has \(settings.openInvitesPerUser) open invites already.")
        }

        let record = InviteRecord(
            id: ids.next("invite"), inviter: inviter, invitees: [invitee], terms: params, now: now)
        invites[record.id] = record
        inviteByKey[key] = record.id
        keyByInvite[record.id] = key
        openInvites[inviter.user, default: 0] += 1
        count(\.invites)
        if let deadline = record.deadline { deadlines.add(.inviteTimesOut(record.id), due: deadline) }
        outbox.append(.note(.inviteSent(record.id, from: inviter, to: record.invitees)))
        for user in record.invitees { ring(user, record, at: now, into: &outbox) }
        return InviteSend.Result(invite: record.id, invitees: record.invitees)
    }

    /// Tells one invitee's devices of an invite (INV-2, DEV-3); the device that sent it does not ring itself.
    private mutating func ring(
        _ user: UserID, _ record: InviteRecord, at now: Instant, into outbox: inout [Output]
    ) {
        let event = InviteReceived(
            invite: record.id, inviter: record.inviter.user, invitees: record.invitees, data: record.data,
            ttlRemaining: record.remainingSeconds(at: now), payload: record.payload)
        tell(user, record.ringing(of: user), .inviteReceived(event), at: now, into: &outbox)
    }

    private static func check(_ params: InviteSend) throws(RPCError) {
        guard params.ttl >= 0, params.ttl <= SignalLimits.ttlSeconds else {
            throw RPCError(
                .invalidParams, "ttl must be from 0 (never) to \(Int(SignalLimits.ttlSeconds)) seconds.")
        }
        guard !params.idempotencyKey.isEmpty else {
            throw RPCError(.invalidParams, "idempotency_key must not be empty.")
        }
        guard params.idempotencyKey.utf8.count <= SignalLimits.nameBytes else {
            throw RPCError(
                .tooLarge, "idempotency_key has at most \(SignalLimits.nameBytes) bytes.",
                limit: SignalLimits.nameBytes)
        }
    }

    /// Takes a device's answer. Of two that come at the same instant the first handled wins (INV-5).
    mutating func answerInvite(
        _ id: InviteID, _ action: InviteHandled.Action, _ data: JSONValue?, from session: Session, at now: Instant,
        into outbox: inout [Output]
    ) throws(RPCError) {
        let endpoint = session.endpoint
        guard session.isRegistered else {
            throw RPCError(.notRegistered, "Only registered devices answer invites; send device.register first.")
        }
        guard var record = invites[id] else { throw Self.unknownInvite }
        let input: InviteeState.Input =
            switch action {
            case .accepted: .accept(by: endpoint.device)
            case .rejected: .reject(by: endpoint.device)
            }
        guard try record.take(input, for: endpoint.user) else { return }
        invites[id] = record
        outbox.append(.note(.inviteAnswered(id, by: endpoint, action)))

        let answer = InviteAnswered(invite: id, invitee: endpoint.user, device: endpoint.device, data: data)
        switch action {
        case .accepted:
            calls.add(Call(invite: id, inviter: record.inviter, invitee: endpoint, acceptedAt: now))
            count(\.calls)
            tell(record.inviter, .inviteAccepted(answer), at: now, into: &outbox)
        case .rejected:
            tell(record.inviter, .inviteRejected(answer), at: now, into: &outbox)
        }
        let handled = InviteHandled(invite: id, device: endpoint.device, action: action)
        tell(
            endpoint.user, .registered(except: endpoint.device), .inviteHandled(handled), at: now, into: &outbox)
        if record.isEnded { finish(record, at: now, into: &outbox) }
    }

    mutating func cancelInvite(
        _ params: InviteCancel, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        guard var record = invites[params.invite] else { throw Self.unknownInvite }
        guard record.inviter.user == session.endpoint.user else {
            throw RPCError(.notYours, "Only the inviter cancels an invite.")
        }
        let released = record.cancel()
        guard !released.isEmpty else {
            throw RPCError(.inviteEnded, "The invite is over; there is nobody to take it back from.")
        }
        invites[record.id] = record
        outbox.append(.note(.inviteCancelled(record.id)))
        let event = ExchangeEvent.inviteCancelled(InviteCancelled(invite: record.id, data: params.data))
        for user in released { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
        tellMissed(record, released, at: now, into: &outbox)
        finish(record, at: now, into: &outbox)
    }

    /// The ttl is over: both sides hear it, whoever of them is still there (INV-7).
    mutating func timeOutInvite(_ id: InviteID, at now: Instant, into outbox: inout [Output]) {
        guard var record = invites[id] else { return }
        let released = record.timeOut()
        guard !released.isEmpty else { return }
        invites[id] = record
        outbox.append(.note(.inviteTimedOut(id)))
        let event = ExchangeEvent.inviteTimedOut(InviteTimedOut(invite: id, invitees: released))
        for user in released { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
        tell(record.inviter, event, at: now, into: &outbox)
        tellMissed(record, released, at: now, into: &outbox)
        finish(record, at: now, into: &outbox)
    }

    /// Delivers the timeout payload, if the inviter gave one (INV-6, INV-7).
    private mutating func tellMissed(
        _ record: InviteRecord, _ users: [UserID], at now: Instant, into outbox: inout [Output]
    ) {
        guard let payload = record.timeoutPayload else { return }
        let event = ExchangeEvent.inviteMissed(InviteMissed(invite: record.id, payload: payload))
        for user in users { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
    }

    /// Every invitee is done (INV-3).
    private mutating func finish(_ record: InviteRecord, at now: Instant, into outbox: inout [Output]) {
        tell(record.inviter, .inviteEnded(InviteEnded(invite: record.id)), at: now, into: &outbox)
        deadlines.add(.inviteIsForgotten(record.id), due: now.advanced(by: settings.inviteMemory))
        let user = record.inviter.user
        let open = openInvites[user, default: 1] - 1
        openInvites[user] = open > 0 ? open : nil
    }

    mutating func forgetInvite(_ id: InviteID) {
        invites[id] = nil
        if let key = keyByInvite.removeValue(forKey: id) { inviteByKey[key] = nil }
    }

    private static let unknownInvite = RPCError(
        .unknownInvite, "There is no such invite, or it has been over for a long time.")
}
