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
        try Self.checkData([params.data, params.payload, params.timeoutPayload], from: session)
        let key = InviteKey(user: inviter.user, key: params.idempotencyKey)
        if let known = inviteByKey[key].flatMap({ invites[$0] }) {
            return InviteSend.Result(invite: known.id, invitees: known.invitees)
        }
        let invitees = try users(called: params.to)
        try checkGroup(of: params, invitees, from: session)
        if params.onlineOnly == true { try checkOnline(invitees, but: inviter) }
        try checkSpace(for: invitees, in: params.group, from: inviter.user)

        lastInvite += 1
        let record = InviteRecord(
            id: ids.next("invite"), number: lastInvite, inviter: inviter, invitees: invitees, terms: params, now: now)
        let event = body(of: record, at: now)
        try afford(cost(of: record, event))
        invites[record.id] = record
        settle(record.id)
        inviteByKey[key] = record.id
        keyByInvite[record.id] = key
        openInvites.add(record)
        invitePlaces.take(record)
        for invitee in invitees { acquaintances.meet(inviter.user, invitee, at: now) }
        count(\.invites)
        if let deadline = record.deadline { deadlines.add(.inviteTimesOut(record.id), due: deadline) }
        outbox.append(.note(.inviteSent(record.id, from: inviter, to: record.invitees)))
        for user in record.invitees { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
        tellGroup(of: record, but: record.invitees, event, at: now, into: &outbox)
        pushInvite(record, to: record.invitees, at: now, into: &outbox)
        return InviteSend.Result(invite: record.id, invitees: record.invitees)
    }

    private static func check(_ params: InviteSend) throws(RPCError) {
        guard !params.to.isEmpty else { throw RPCError(.invalidParams, "to must name somebody.") }
        guard params.to.count <= SignalLimits.invitees else {
            throw RPCError(
                .tooLarge, "An invite asks at most \(SignalLimits.invitees) users.", limit: SignalLimits.invitees)
        }
        guard params.ttl >= 0, params.ttl <= SignalLimits.ttlSeconds else {
            throw RPCError(
                .invalidParams, "ttl must be from 0 (never) to \(Int(SignalLimits.ttlSeconds)) seconds.")
        }
    }

    /// What an invite, or what follows on it, bears is told to others as it is: they must be able to take it.
    private static func checkData(_ data: [JSONValue?], from session: Session) throws(RPCError) {
        let limit = session.isInternal ? SignalLimits.streamInviteDataBytes : SignalLimits.inviteDataBytes
        let bytes = data.reduce(0) { $0 + ($1?.textBytes ?? 0) }
        guard bytes <= limit else {
            throw RPCError(
                .tooLarge,
                "What an invite or an answer bears has at most \(limit) bytes as JSON text; this has \(bytes).",
                limit: limit)
        }
    }

    /// In a group members ask members.
    private func checkGroup(
        of params: InviteSend, _ invitees: [UserID], from session: Session
    ) throws(RPCError) {
        guard let id = params.group else { return }
        let group = try group(id, of: session)
        guard invitees.allSatisfy(group.members.contains) else {
            throw RPCError(.notAllowed, "An invite in a group asks its members only.")
        }
    }

    private func checkOnline(_ invitees: [UserID], but inviter: Endpoint) throws(RPCError) {
        for invitee in invitees {
            let isOnline = sessions.sessions(of: invitee).contains { $0.isRegistered && $0.endpoint != inviter }
            guard isOnline else { throw RPCError(.noDeviceOnline, "None of the user's devices is online.") }
        }
    }

    /// Tells the members of an invite's group, `others` aside, who are told otherwise (GRP-2).
    private mutating func tellGroup(
        of record: InviteRecord, but others: [UserID], _ event: EventBody, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard let group = record.group.flatMap({ groups[$0] }) else { return }
        for member in group.members where !others.contains(member) {
            tell(member, record.ringing(of: member), event, at: now, into: &outbox)
        }
    }

    /// Takes a device's answer. Of two that come at the same instant the first handled wins (INV-5).
    mutating func answerInvite(
        _ id: InviteID, _ action: InviteHandled.Action, _ data: JSONValue?, from session: Session, at now: Instant,
        into outbox: inout [Output]
    ) throws(RPCError) {
        let endpoint = session.endpoint
        try Self.checkData([data], from: session)
        guard session.isRegistered else {
            throw RPCError(.notRegistered, "Only registered devices answer invites; send device.register first.")
        }
        guard var record = invites[id] else { throw Self.unknownInvite }
        guard record.inviter != endpoint else {
            throw RPCError(.notYours, "The device that sent an invite does not answer it.")
        }
        let input: InviteeState.Input =
            switch action {
            case .accepted: .accept(by: endpoint.device)
            case .rejected: .reject(by: endpoint.device)
            }
        guard try record.take(input, for: endpoint.user) else { return }
        try afford(cost(of: data, to: record), .sequel)
        invites[id] = record
        leavePlaces(of: record, [endpoint.user])
        outbox.append(.note(.inviteAnswered(id, by: endpoint, action)))

        let answer = InviteAnswered(invite: id, invitee: endpoint.user, device: endpoint.device, data: data)
        switch action {
        case .accepted:
            acquaintances.meet(endpoint.user, record.inviter.user, at: now)
            calls.add(Call(invite: id, inviter: record.inviter, invitee: endpoint, acceptedAt: now))
            count(\.calls)
        case .rejected:
            let said = data?["reason"]?.string ?? ""
            let reason = ["busy", "noAnswer"].contains(said) ? said : "declined"
            recordEnd(of: id, with: endpoint.user, reason: reason, duration: 0, at: now, into: &outbox)
        }
        let event = body(of: action == .accepted ? .inviteAccepted(answer) : .inviteRejected(answer))
        tell(record.inviter, event, at: now, into: &outbox)
        tellGroup(of: record, but: [endpoint.user], event, at: now, into: &outbox)
        let handled = InviteHandled(invite: id, device: endpoint.device, action: action)
        tell(
            endpoint.user, .registered(except: endpoint.device), .inviteHandled(handled), at: now, into: &outbox)
        pushEnd(
            of: record, for: [endpoint.user], reason: action.rawValue, by: endpoint.device, at: now, into: &outbox)
        if record.isEnded { finish(record, at: now, into: &outbox) }
    }

    mutating func cancelInvite(
        _ params: InviteCancel, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        try Self.checkData([params.data], from: session)
        guard let record = invites[params.invite] else { throw Self.unknownInvite }
        guard record.inviter.user == session.endpoint.user else {
            throw RPCError(.notYours, "Only the inviter cancels an invite.")
        }
        guard !record.pending.isEmpty else {
            throw RPCError(.inviteEnded, "The invite is over; there is nobody to take it back from.")
        }
        try afford(cost(of: params.data, to: record), .sequel)
        withdraw(record, params.data, at: now, into: &outbox)
    }

    /// Takes an invite back from whoever has not answered.
    mutating func withdraw(
        _ invite: InviteRecord, _ data: JSONValue?, at now: Instant, into outbox: inout [Output]
    ) {
        var record = invite
        let released = record.cancel()
        guard !released.isEmpty else { return }
        invites[record.id] = record
        leavePlaces(of: record, released)
        outbox.append(.note(.inviteCancelled(record.id)))
        let event = body(of: .inviteCancelled(InviteCancelled(invite: record.id, data: data)))
        for user in released { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
        tellGroup(of: record, but: released, event, at: now, into: &outbox)
        tellMissed(record, released, at: now, into: &outbox)
        pushEnd(
            of: record, for: released, reason: "cancelled", payload: record.timeoutPayload, at: now, into: &outbox)
        finish(record, at: now, into: &outbox)
    }

    /// Gives those who have still to answer other data (INV-15).
    mutating func modifyInvite(
        _ params: InviteModify, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        guard var record = invites[params.invite] else { throw Self.unknownInvite }
        try Self.checkData([params.data, record.payload?.value, record.timeoutPayload?.value], from: session)
        guard record.inviter.user == session.endpoint.user else {
            throw RPCError(.notYours, "Only the inviter modifies an invite.")
        }
        let pending = record.pending
        guard !pending.isEmpty else {
            throw RPCError(.inviteEnded, "The invite is over; there is nobody left to answer it.")
        }
        record.modify(params.data)
        try afford(2 * cost(of: params.data, to: record))
        invites[record.id] = record
        settle(record.id)
        let event = body(of: .inviteModified(InviteModified(invite: record.id, data: params.data)))
        for user in pending { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
        tellGroup(of: record, but: pending, event, at: now, into: &outbox)
    }

    /// The ttl is over, or `user` alone will not answer any more: both sides hear it, whoever is still there (INV-7).
    mutating func timeOutInvite(
        _ id: InviteID, for user: UserID? = nil, at now: Instant, into outbox: inout [Output]
    ) {
        guard var record = invites[id] else { return }
        let released = record.timeOut(for: user)
        guard !released.isEmpty else { return }
        actsFor = record.inviter.principal
        invites[id] = record
        leavePlaces(of: record, released)
        if user == nil { outbox.append(.note(.inviteTimedOut(id))) }
        let event = body(of: .inviteTimedOut(InviteTimedOut(invite: id, invitees: released)))
        for user in released { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
        tell(record.inviter, event, at: now, into: &outbox)
        tellGroup(of: record, but: released, event, at: now, into: &outbox)
        tellMissed(record, released, at: now, into: &outbox)
        pushEnd(
            of: record, for: released, reason: Self.timedOut, payload: record.timeoutPayload, at: now, into: &outbox)
        if record.isEnded { finish(record, at: now, into: &outbox) }
    }

    /// Delivers the timeout payload, if the inviter gave one (INV-6, INV-7).
    private mutating func tellMissed(
        _ record: InviteRecord, _ users: [UserID], at now: Instant, into outbox: inout [Output]
    ) {
        guard let payload = record.timeoutPayload?.value else { return }
        let event = body(of: .inviteMissed(InviteMissed(invite: record.id, payload: payload)))
        for user in users { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
    }

    /// Every invitee is done (INV-3).
    private mutating func finish(_ record: InviteRecord, at now: Instant, into outbox: inout [Output]) {
        tell(record.inviter, .inviteEnded(InviteEnded(invite: record.id)), at: now, into: &outbox)
        deadlines.add(.inviteIsForgotten(record.id), due: now.advanced(by: settings.inviteMemory))
        openInvites.remove(record)
        invitePlaces.leaveGroup(record)
        invites[record.id]?.shed()
        let sender = record.inviter.user
        if let oldest = endedInvites.add(record.id, of: sender, limit: settings.endedInvitesPerUser) {
            forgetInvite(oldest)
        }
    }

    mutating func forgetInvite(_ id: InviteID) {
        if let sender = invites[id]?.inviter.user { endedInvites.remove(id, of: sender) }
        invites[id] = nil
        if let key = keyByInvite.removeValue(forKey: id) { inviteByKey[key] = nil }
    }

    private static let unknownInvite = RPCError(
        .unknownInvite, "There is no such invite, or it has been over for a long time.")
}
