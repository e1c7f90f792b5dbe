import JSON
import SignalWire
import Core

/// Invites, from being sent until they are forgotten, and the calls that they have become.
///
/// It owns every timer of an invite, so that one fires though its inviter is gone (INV-7).
struct Invites: Sendable {
    /// How far back a cold start goes among the invites of groups.
    static let coldStart = Duration.seconds(30)

    private let limits: InviteLimits
    /// How long an ended invite is remembered.
    private let memory: Duration
    /// Ended invites of one user that are remembered; the oldest go.
    private let endedPerUser: Int
    private var records = ChangeTrackingMap<InviteID, InviteRecord>()
    private var keys = InviteKeys()
    private var open = OpenInvites()
    private var places = InvitePlaces()
    private var ended = EndedInvites()
    /// The number of the newest invite.
    private var lastNumber: UInt64 = 0
    private(set) var calls = Calls()
    /// Of invites that a transfer has made, the how-manyeth in a row it was.
    private var transfers: [InviteID: Int] = [:]

    init(_ settings: ExchangeCore.Settings) {
        limits = settings.invites
        memory = settings.inviteMemory
        endedPerUser = settings.endedInvitesPerUser
    }

    /// How many are known, open or ended.
    var count: Int { records.count }
    /// How many are open.
    var openCount: Int { open.count }
    /// All that are known, open or ended.
    var all: [InviteRecord] { records.values }
    /// How many idempotency keys name an invite.
    var keyCount: Int { keys.count }
    /// Whether as many invites have a key as keys name one.
    var hasConsistentKeys: Bool { keys.isConsistent }

    subscript(id: InviteID) -> InviteRecord? { records[id] }

    /// The open invites from `user`, oldest first.
    func sent(by user: UserID) -> [InviteID] { open.sent(by: user) }
    /// The first open invites from `user` behind a number, oldest first.
    ///
    /// - Complexity: Logarithmic in the user's invites.
    func sent(by user: UserID, after number: UInt64, atMost limit: Int) -> [InviteRecord] {
        let own = open.sent(by: user)
        let first = own.sortedIndex(behind: { records[$0].map { $0.number > number } ?? true })
        return own[first...].prefix(limit).compactMap { records[$0] }
    }
    /// The open invites to `user`, whether it has answered or not, oldest first.
    func received(by user: UserID) -> [InviteID] { open.received(by: user) }
    /// The open invites in a group, oldest first.
    func inGroup(_ group: GroupID) -> [InviteID] { open.inGroup(group) }
    /// The invites that `user` has still to answer, oldest first.
    func toAnswer(by user: UserID) -> [InviteRecord] {
        open.received(by: user).compactMap { records[$0] }.filter { $0.state(of: user) == .pending }
    }
    /// The places that are taken with `user`.
    func places(with user: UserID) -> InvitePlaces.Table { places.toAnswer(by: user) }
    /// The places that are taken in a group.
    func places(in group: GroupID) -> InvitePlaces.Table { places.inGroup(group) }

    // MARK: - Sending

    /// The invite that a request has made already, by its idempotency key.
    ///
    /// - Throws: The request's own error, even if the invite is known.
    func known(_ params: InviteSend, from session: Session) throws(RPCError) -> InviteRecord? {
        try RequestChecks.check(params)
        try RequestChecks.check(inviteData: [params.data, params.payload, params.timeoutPayload], from: session)
        return keys.invite(of: session.endpoint.user, params.idempotencyKey).flatMap { records[$0] }
    }

    /// An invite that gives up its place with one invitee.
    struct GivenPlace: Hashable {
        var invite: InviteID
        var invitee: UserID
    }

    /// Sends an invite: notifies the invitees, and the members of the group.
    ///
    /// - Parameters:
    ///   - invitees: The invited users, all of them members of `group`, if there is one.
    ///   - reach: Limits of the pushes that it may cause, and of the bytes of their tokens.
    /// - Returns: The invite, and the invites that must time out because it takes their slots.
    mutating func send(
        _ params: InviteSend, to invitees: [UserID], in group: Group?, from inviter: Endpoint,
        _ acquaintances: Acquaintances, reach: (pushes: Int, tokenBytes: Int), at now: Instant,
        _ effects: inout Effects
    ) throws(RPCError) -> (record: InviteRecord, given: [GivenPlace]) {
        let given = try findSpace(for: invitees, in: group, from: inviter.user, acquaintances)
        lastNumber += 1
        let record = InviteRecord(
            id: effects.nextID("invite"), number: lastNumber, inviter: inviter, invitees: invitees, terms: params,
            now: now)
        let event = effects.body(of: record, at: now)
        let members = group?.members ?? []
        let push = Weight.record + (record.payload?.bytes ?? 0)
        try effects.afford(
            Weight.of(record) + Weight.of(event, for: invitees.count + members.count) + reach.pushes * push
                + reach.tokenBytes)
        records[record.id] = record
        charge(record.id, &effects.budget)
        keys.set(params.idempotencyKey, of: inviter.user, to: record.id)
        open.add(record)
        places.take(record)
        effects.count(\.invites)
        if let deadline = record.deadline { effects.schedule(.inviteTimesOut(record.id), due: deadline) }
        effects.note(.inviteSent(record.id, from: inviter, to: record.invitees))
        Self.notify(record.invitees, of: record, event, &effects)
        Self.tellGroup(members, of: record, but: record.invitees, event, &effects)
        return (record, given)
    }

    // MARK: - Transfers

    /// The key of an invite's data that marks the invite as a transfer of a call.
    static let transferKey = "transfer"

    /// Completes the data of an invite that claims to be a transfer: adds who requested the transfer, in which call,
    /// and its number in a row of transfers. The inviter's own values are discarded (CALL-8).
    ///
    /// - Returns: The granted transfer; `nil` for an invite that claims none.
    func vouch(
        for params: inout InviteSend, to invitees: [UserID], from inviter: Endpoint
    ) throws(RPCError) -> CallTransfers.Granted? {
        guard case .object(var data)? = params.data, let claim = data[Self.transferKey] else { return nil }
        guard let old = claim["invite"]?.string.flatMap({ try? InviteID($0) }) else {
            throw RPCError(.invalidParams, "A transfer must name the call that it replaces: transfer.invite.")
        }
        guard let call = try calls.call(old, nil, of: inviter), let peer = call.peer(of: inviter) else {
            throw calls.noCall(old, for: inviter)
        }
        let known = calls.transfers(of: call)
        guard let request = known.requests[peer.user], params.to == [request.target], params.group == nil else {
            throw RPCError(.notYours, "The peer of the call did not request this transfer.")
        }
        guard known.count < SignalLimits.transfersInARow else {
            throw RPCError(
                .notAllowed, "The call was transferred \(known.count) times in a row, which is the limit.")
        }
        if let replaces = request.replaces {
            let parties = Set([peer.user, invitees.first].compactMap { $0 })
            guard calls.calls(of: replaces).contains(where: { Set([$0.inviter.user, $0.invitee.user]) == parties })
            else { throw Calls.unknownCall }
        }
        var members: [String: JSONValue] = [
            "invite": .string(old.text), "by": .string(peer.user.text), "count": .integer(Int64(known.count + 1)),
        ]
        if let replaces = request.replaces { members["replaces"] = .string(replaces.text) }
        data[Self.transferKey] = .object(members)
        params.data = .object(data)
        return CallTransfers.Granted(count: known.count + 1, call: call, by: peer.user)
    }

    /// An invite is a transfer, and what it was asked for with is good for no other.
    mutating func note(_ invite: InviteID, _ transfer: CallTransfers.Granted) {
        transfers[invite] = transfer.count
        calls.forgetRequest(of: transfer.by, in: transfer.call)
    }

    // MARK: - Answering and ending

    /// Takes a device's answer. Of two that come at the same instant the first handled wins (INV-5).
    ///
    /// - Returns: The invite as it is then; `nil` if the device repeats its answer.
    mutating func answer(
        _ id: InviteID, _ action: InviteHandled.Action, _ data: JSONValue?, from session: Session, _ groups: Groups,
        at now: Instant, _ effects: inout Effects
    ) throws(RPCError) -> InviteRecord? {
        let endpoint = session.endpoint
        try RequestChecks.check(inviteData: [data], from: session)
        guard session.isRegistered else {
            throw RPCError(.notRegistered, "Only registered devices can answer invites; send device.register first.")
        }
        guard var record = records[id] else { throw Self.unknownInvite }
        guard record.inviter != endpoint else {
            throw RPCError(.notYours, "The device that sent an invite cannot answer it.")
        }
        let input: InviteeState.Input =
            switch action {
            case .accepted: .accept(by: endpoint.device)
            case .rejected: .reject(by: endpoint.device)
            }
        guard try record.take(input, for: endpoint.user) else { return nil }
        let members = groups.members(of: record.group)
        try effects.afford(Self.cost(of: data, to: record, members), .sequel)
        records[id] = record
        places.leave(record, by: [endpoint.user])
        effects.note(.inviteAnswered(id, by: endpoint, action))

        let answer = InviteAnswered(invite: id, invitee: endpoint.user, device: endpoint.device, data: data)
        switch action {
        case .accepted:
            calls.add(
                Call(invite: id, inviter: record.inviter, invitee: endpoint, acceptedAt: now),
                transfers: transfers[id] ?? 0)
            effects.count(\.calls)
        case .rejected:
            let said = data?["reason"]?.string ?? ""
            let reason = ["busy", "noAnswer"].contains(said) ? said : "declined"
            effects.recordEnd(of: id, with: endpoint.user, reason: reason, duration: 0, at: now)
        }
        let event = effects.body(of: action == .accepted ? .inviteAccepted(answer) : .inviteRejected(answer))
        effects.notify(record.inviter, event)
        Self.tellGroup(members, of: record, but: [endpoint.user], event, &effects)
        let handled = InviteHandled(invite: id, device: endpoint.device, action: action)
        effects.notify(
            endpoint.user, .registered(except: endpoint.device), effects.body(of: .inviteHandled(handled)))
        return record
    }

    /// The invite that its inviter takes back.
    func toCancel(
        _ params: InviteCancel, from session: Session, _ groups: Groups, _ effects: inout Effects
    ) throws(RPCError) -> InviteRecord {
        try RequestChecks.check(inviteData: [params.data], from: session)
        guard let record = records[params.invite] else { throw Self.unknownInvite }
        guard record.inviter.user == session.endpoint.user else {
            throw RPCError(.notYours, "Only the inviter can cancel an invite.")
        }
        guard !record.pending.isEmpty else {
            throw RPCError(.inviteEnded, "The invite has ended and can no longer be cancelled.")
        }
        try effects.afford(Self.cost(of: params.data, to: record, groups.members(of: record.group)), .sequel)
        return record
    }

    /// Withdraws an invite from the invitees that have not answered.
    ///
    /// - Returns: The invite as it is then, and the users that it was withdrawn from; none if it had ended before.
    mutating func withdraw(
        _ invite: InviteRecord, _ data: JSONValue?, _ groups: Groups, _ effects: inout Effects
    ) -> (record: InviteRecord, released: [UserID]) {
        var record = invite
        let released = record.cancel()
        guard !released.isEmpty else { return (record, []) }
        records[record.id] = record
        places.leave(record, by: released)
        effects.note(.inviteCancelled(record.id))
        let event = effects.body(of: .inviteCancelled(InviteCancelled(invite: record.id, data: data)))
        Self.notify(released, of: record, event, &effects)
        Self.tellGroup(groups.members(of: record.group), of: record, but: released, event, &effects)
        Self.tellMissed(released, of: record, &effects)
        return (record, released)
    }

    /// Gives those who have still to answer other data (INV-15).
    mutating func modify(
        _ params: InviteModify, from session: Session, _ groups: Groups, _ effects: inout Effects
    ) throws(RPCError) {
        guard var record = records[params.invite] else { throw Self.unknownInvite }
        guard params.data?[Self.transferKey] == nil else {
            throw RPCError(.invalidParams, "An invite that was already sent cannot become a transfer.")
        }
        try RequestChecks.check(
            inviteData: [params.data, record.payload?.value, record.timeoutPayload?.value], from: session)
        guard record.inviter.user == session.endpoint.user else {
            throw RPCError(.notYours, "Only the inviter can modify an invite.")
        }
        let pending = record.pending
        guard !pending.isEmpty else {
            throw RPCError(.inviteEnded, "The invite has ended; no user can answer it any more.")
        }
        record.modify(params.data)
        let members = groups.members(of: record.group)
        try effects.afford(2 * Self.cost(of: params.data, to: record, members))
        records[record.id] = record
        charge(record.id, &effects.budget)
        let event = effects.body(of: .inviteModified(InviteModified(invite: record.id, data: params.data)))
        Self.notify(pending, of: record, event, &effects)
        Self.tellGroup(members, of: record, but: pending, event, &effects)
    }

    /// The ttl has ended, or `user` alone can no longer answer: both sides are notified, if they are still connected
    /// (INV-7).
    ///
    /// - Returns: The invite as it is then, and the users that it no longer rings; `nil` if no answer was outstanding.
    mutating func timeOut(
        _ id: InviteID, for user: UserID? = nil, _ groups: Groups, _ effects: inout Effects
    ) -> (record: InviteRecord, released: [UserID])? {
        guard var record = records[id] else { return nil }
        let released = record.timeOut(for: user)
        guard !released.isEmpty else { return nil }
        records[id] = record
        places.leave(record, by: released)
        if user == nil { effects.note(.inviteTimedOut(id)) }
        let event = effects.body(of: .inviteTimedOut(InviteTimedOut(invite: id, invitees: released)))
        Self.notify(released, of: record, event, &effects)
        effects.notify(record.inviter, event)
        Self.tellGroup(groups.members(of: record.group), of: record, but: released, event, &effects)
        Self.tellMissed(released, of: record, &effects)
        return (record, released)
    }

    /// Every invitee is done (INV-3): notifies the inviter, and keeps only how the invite ended.
    mutating func finish(_ record: InviteRecord, at now: Instant, _ effects: inout Effects) {
        effects.notify(record.inviter, .inviteEnded(InviteEnded(invite: record.id)))
        effects.schedule(.inviteIsForgotten(record.id), due: now.advanced(by: memory))
        open.remove(record)
        places.leaveGroup(record)
        records[record.id]?.shed()
        if let oldest = ended.add(record.id, of: record.inviter.user, limit: endedPerUser) { forget(oldest) }
    }

    /// Nothing is known of an invite any more.
    mutating func forget(_ id: InviteID) {
        if let sender = records[id]?.inviter.user { ended.remove(id, of: sender) }
        records[id] = nil
        transfers[id] = nil
        keys.free(id)
    }

    // MARK: - Removed groups and users

    /// A group is dismissed. Detaches its open invites, which continue without it, so that a later group of the same
    /// name does not see them.
    mutating func leave(_ group: GroupID) {
        for var record in open.inGroup(group).compactMap({ records[$0] }) {
            open.leaveGroup(record)
            places.leaveGroup(record)
            record.leaveGroup()
            records[record.id] = record
        }
    }

    /// Frees the idempotency keys of a user's invites, all of which have ended, so that a later user of the same name
    /// can use these keys.
    mutating func freeKeys(of user: UserID) {
        for id in ended.sent(by: user) where keys.free(id) { records.note(id) }
    }

    /// Removes a user without an account from an invite: it can no longer answer. If the invite continues, the user is
    /// no longer one of its invitees.
    mutating func strike(_ user: UserID, from id: InviteID) {
        guard var record = records[id], !record.isEnded else { return }
        open.strike(user, from: record)
        record.strike(user)
        records[id] = record
    }

    // MARK: - Calls

    /// Passes a signal to the peer of a call, or of an invite that rings (CALL-1: candidates need not wait).
    mutating func pass(_ params: CallSignal, from session: Session, _ effects: inout Effects) throws(RPCError) {
        try RequestChecks.check(signal: params.type, params.data, isInternal: session.isInternal)
        let endpoint = session.endpoint
        let event = effects.body(
            of: .callSignal(
                CallSignalled(invite: params.invite, type: params.type, data: params.data, from: endpoint.user)))
        if let call = try calls.call(params.invite, params.peer, of: endpoint) {
            guard let peer = call.peer(of: endpoint) else { throw Calls.unknownCall }
            let request = params.type == Self.transferKey ? try CallTransfers.Request(params.data) : nil
            try effects.afford(Weight.of(event, for: 1))
            if let request { calls.note(request, by: endpoint.user, in: call) }
            return effects.notify(peer, event)
        }
        guard let record = records[params.invite], !record.isEnded else {
            throw calls.noCall(params.invite, for: endpoint)
        }
        if record.inviter == endpoint {
            let pending = record.pending.filter { params.peer == nil || params.peer == $0 }
            guard !pending.isEmpty else { throw Calls.unknownCall }
            try effects.afford(Weight.of(event, for: pending.count))
            Self.notify(pending, of: record, event, &effects)
        } else if record.state(of: endpoint.user) == .pending, session.isRegistered {
            try effects.afford(Weight.of(event, for: 1))
            effects.notify(record.inviter, event)
        } else {
            throw RPCError(.notYours, "This device is neither inviter nor invitee.")
        }
    }

    /// Whether the peer of a call is connected, or can still resume its session (CALL-4).
    func probe(
        _ params: CallProbe, from endpoint: Endpoint, _ sessions: Sessions, at now: Instant
    ) throws(RPCError) -> CallProbe.Result {
        guard let peer = try calls.call(params.invite, params.peer, of: endpoint)?.peer(of: endpoint) else {
            throw calls.noCall(params.invite, for: endpoint)
        }
        let isConnected = sessions.session(at: peer) != nil
        return CallProbe.Result(present: isConnected || sessions.canReturn(peer, at: now))
    }

    /// Hangs up at a device's request.
    mutating func endCall(
        _ params: CallEnd, from endpoint: Endpoint, at now: Instant, _ effects: inout Effects
    ) throws(RPCError) {
        guard let call = try calls.call(params.invite, params.peer, of: endpoint) else {
            throw calls.noCall(params.invite, for: endpoint)
        }
        try RequestChecks.check(params)
        calls.end(
            call, by: endpoint, reason: params.reason, cause: params.cause, duration: params.durationMilliseconds,
            at: now, &effects)
    }

    /// Ends a call because a device of it is there no more.
    mutating func disconnect(_ call: Call, _ endpoint: Endpoint, at now: Instant, _ effects: inout Effects) {
        let duration = Int64(call.acceptedAt.duration(to: now).milliseconds)
        calls.end(call, by: endpoint, reason: "disconnected", cause: nil, duration: duration, at: now, &effects)
    }

    /// Ends a call at the operator's request.
    mutating func endByOperator(_ call: Call, at now: Instant, _ effects: inout Effects) {
        calls.endByOperator(call, at: now, &effects)
    }

    /// Ends all calls of a device.
    mutating func endCalls(of endpoint: Endpoint, at now: Instant, _ effects: inout Effects) {
        for call in calls.calls(of: endpoint) { disconnect(call, endpoint, at: now, &effects) }
    }

    /// Drops a call that no party can end, since both its devices have been disconnected for the resume window. A
    /// device internal to the exchange never disconnects by itself, and is notified.
    mutating func dropOrphan(_ id: CallKey, _ sessions: Sessions, at now: Instant, _ effects: inout Effects) {
        calls.dropOrphan(id, sessions, at: now, &effects)
    }

    /// Notifies the peers of a session's device that its connection is lost or restored (CONN-8).
    func tellPeers(of session: Session, _ event: (StreamChange) -> ExchangeEvent, _ effects: inout Effects) {
        for call in calls.calls(of: session.endpoint) {
            guard let peer = call.peer(of: session.endpoint) else { continue }
            let change = StreamChange(
                invite: call.id.invite, connection: session.name, user: session.endpoint.user)
            effects.notify(peer, event(change))
        }
    }

    // MARK: - Catching up

    /// Sends a device each invite that its user has still to answer, and those in its user's groups (INV-14).
    ///
    /// These notifications are kept like all events, since a device whose connection drops meanwhile does not register
    /// again when it resumes.
    func synchronize(
        _ endpoint: Endpoint, _ start: DeviceRegister.Start, _ groups: Groups, at now: Instant,
        _ effects: inout Effects
    ) {
        var left = SignalLimits.syncBytes
        for record in toSync(with: endpoint, start, groups, at: now) {
            let event = effects.body(of: record, at: now)
            left -= event.bytes
            guard left >= 0 else { return }
            effects.notify(endpoint, event)
        }
    }

    private func toSync(
        with endpoint: Endpoint, _ start: DeviceRegister.Start, _ groups: Groups, at now: Instant
    ) -> [InviteRecord] {
        let user = endpoint.user
        let inGroups = groups.groups(of: user).flatMap { open.inGroup($0.id) }
        return ordered(open.received(by: user) + inGroups).filter { record in
            guard record.ringing(of: user).includes(endpoint.device, isRegistered: true) else { return false }
            // Who has been asked and has answered is done with it; a member that is not asked looks on to the end.
            guard record.state(of: user) ?? .pending == .pending else { return false }
            guard record.group != nil, start == .cold else { return true }
            return record.sentAt.duration(to: now) <= Self.coldStart
        }
    }

    func list(_ params: InviteList, of user: UserID, at now: Instant) -> InviteListText {
        let own = ordered(open.sent(by: user) + open.received(by: user))
        let page = Page(
            own.lazy.filter { $0.number > params.after ?? 0 }.compactMap { record in
                record.listed(at: now).map { (record.number, $0) }
            }, bytes: \.utf8.count)
        return InviteListText(entries: page.entries, next: page.next)
    }

    /// The records of invites, each once, oldest first.
    private func ordered(_ ids: [InviteID]) -> [InviteRecord] {
        Set(ids).compactMap { records[$0] }.sorted { $0.number < $1.number }
    }

    // MARK: - To disk and back

    /// Puts out which invites and calls changed, with the steps of their records, and charges the inviters.
    mutating func recordChanges(
        at now: Instant, _ budget: inout Budget, into outbox: inout [ExchangeCore.Output]
    ) {
        for (id, before) in records.takeChanges() {
            charge(id, &budget)
            guard let record = records[id] else {
                outbox.append(.persist(.inviteForgotten(id)))
                continue
            }
            let forgottenAt = record.isEnded ? now.advanced(by: memory) : nil
            outbox.append(.persist(.invite(record.stored(key: keys.key(of: id), forgottenAt: forgottenAt))))
            for step in record.steps(since: before, at: now) { outbox.append(.persist(.record(step))) }
        }
        calls.recordChanges(at: now, &budget, into: &outbox)
    }

    /// Charges the inviters of all invites and calls.
    func chargeAll(_ budget: inout Budget) {
        for id in records.keys { charge(id, &budget) }
        calls.chargeAll(&budget)
    }

    /// Takes in an invite that is on disk.
    ///
    /// - Parameter hasAccount: Whether its inviter has an account.
    /// - Returns: The users that it concerns, if it is open.
    mutating func restore(
        _ invite: StoredInvite, hasAccount: Bool, at now: Instant, _ effects: inout Effects
    ) -> [UserID] {
        lastNumber += 1
        var record = InviteRecord(invite, number: lastNumber, at: now)
        if record.isEnded { record.shed() }
        records.restore(record, for: record.id)
        if let key = invite.idempotencyKey {
            if hasAccount {
                keys.set(key, of: invite.inviter, to: record.id)
            } else {
                // Who is given the name of a removed user is not given its key, after this restart or another.
                records.note(record.id)
            }
        }
        guard record.isEnded else {
            open.add(record)
            places.take(record)
            if let deadline = record.deadline { effects.schedule(.inviteTimesOut(record.id), due: deadline) }
            return [record.inviter.user] + record.invitees
        }
        _ = ended.add(record.id, of: record.inviter.user, limit: .max)
        let whole = now.advanced(by: memory)
        effects.schedule(.inviteIsForgotten(record.id), due: min(invite.forgottenAt ?? whole, whole))
        return []
    }

    /// Takes in a call that is on disk.
    mutating func restore(_ call: Call) { calls.restore(call) }

    // MARK: - Places

    /// Finds a slot for an invite.
    ///
    /// An invite that has a ttl of 0 keeps its slot until the invitee answers, whether its inviter is connected or not.
    /// So each inviter may have only a few with one invitee, and all inviters that the invitee does not know have only
    /// a share between them, however many they are. Within that share the stranger with the most slots gives one to a
    /// stranger who still has fewer with it.
    ///
    /// - Returns: The invites that have to give up their slots; nothing has been changed yet.
    /// - Throws: `tooManyRequests` if there is no slot with one of the invitees, with the inviter or in the group. The
    ///   error names the limit, and reveals of other users' invites only that they exist.
    private func findSpace(
        for invitees: [UserID], in group: Group?, from inviter: UserID, _ acquaintances: Acquaintances
    ) throws(RPCError) -> [GivenPlace] {
        guard open.sent(by: inviter).count < limits.open else {
            throw RPCError(
                .tooManyRequests,
                "This user already has \(limits.open) open invites; cancel one, or wait until one is answered.")
        }
        var given: [GivenPlace] = []
        for invitee in invitees {
            if let place = try findSpace(with: invitee, from: inviter, acquaintances) { given.append(place) }
        }
        if let group { try checkSpace(in: group, from: inviter) }
        return given
    }

    private func findSpace(
        with invitee: UserID, from inviter: UserID, _ acquaintances: Acquaintances
    ) throws(RPCError) -> GivenPlace? {
        let taken = places.toAnswer(by: invitee)
        guard taken.count(of: inviter) < limits.ofPair else {
            throw RPCError(
                .tooManyRequests,
                "An invitee already has \(limits.ofPair) unanswered invites from this user; cancel one, or wait "
                    + "until one is answered.")
        }
        if !acquaintances.has(invitee, inviter), strangersPlaces(with: invitee, acquaintances) >= limits.ofStrangers {
            // As many places are taken afterwards as before.
            if let place = placeToGive(with: invitee, to: inviter, acquaintances) { return place }
            throw RPCError(
                .tooManyRequests,
                "An invitee already has \(limits.ofStrangers) unanswered invites from users whose invites it "
                    + "never accepted, as this user is; try again later, or wait until the invitee calls.")
        }
        guard taken.count < limits.open else {
            throw RPCError(
                .tooManyRequests,
                "An invitee already has \(limits.open) unanswered invites; try again later.")
        }
        return nil
    }

    /// The oldest invite of the stranger that has most places with `invitee`; nil if no stranger would have more than
    /// `inviter` afterwards. So strangers that have one each keep theirs, and no two take a place from each other in turn.
    private func placeToGive(
        with invitee: UserID, to inviter: UserID, _ acquaintances: Acquaintances
    ) -> GivenPlace? {
        let taken = places.toAnswer(by: invitee)
        let strangers = taken.byInviter.filter { !acquaintances.has(invitee, $0.key) }
        guard let most = strangers.values.max(), most > taken.count(of: inviter) + 1 else { return nil }
        let oldest = open.received(by: invitee).first { id in
            guard let record = records[id], record.state(of: invitee) == .pending else { return false }
            return strangers[record.inviter.user] == most
        }
        return oldest.map { GivenPlace(invite: $0, invitee: invitee) }
    }

    /// The number of slots with `invitee` taken by inviters that it does not know.
    ///
    /// - Complexity: Linear in the inviters that have a slot.
    func strangersPlaces(with invitee: UserID, _ acquaintances: Acquaintances) -> Int {
        places.toAnswer(by: invitee).byInviter.reduce(0) { count, entry in
            acquaintances.has(invitee, entry.key) ? count : count + entry.value
        }
    }

    /// In a group, each member's first invite has a place of its own, and so have the owner's; the others share the rest.
    private func checkSpace(in group: Group, from inviter: UserID) throws(RPCError) {
        let taken = places.inGroup(group.id)
        let own = taken.count(of: inviter)
        guard own < limits.ofPair else {
            throw RPCError(
                .tooManyRequests,
                "This user already has \(limits.ofPair) open invites in the group; cancel one, or wait until one has "
                    + "ended.")
        }
        let owner = group.owner
        guard own == 0 || inviter == owner || Self.shared(taken, but: owner) < limits.beyondFirst else {
            throw RPCError(
                .tooManyRequests,
                "The members of the group already have \(limits.beyondFirst) open invites beyond their first; cancel "
                    + "yours, or wait until one has ended.")
        }
        guard taken.count < limits.open else {
            throw RPCError(
                .tooManyRequests, "There are already \(limits.open) open invites in the group; try again later.")
        }
    }

    private static func shared(_ places: InvitePlaces.Table, but owner: UserID) -> Int {
        places.byInviter.reduce(0) { count, entry in entry.key == owner ? count : count + entry.value - 1 }
    }

    // MARK: - Within

    /// Bytes kept for an answer, an end or a change that carries `data`.
    private static func cost(of data: JSONValue?, to record: InviteRecord, _ members: [UserID]) -> Int {
        (data?.textBytes ?? 0) + Weight.record + (record.invitees.count + members.count + 2) * Weight.entry
    }

    private func charge(_ id: InviteID, _ budget: inout Budget) {
        let record = records[id]
        budget.charge(.invite(id), record.map(Weight.of) ?? 0, for: record?.inviter.principal)
    }

    private static func notify(
        _ users: [UserID], of record: InviteRecord, _ event: EventBody, _ effects: inout Effects
    ) {
        for user in users { effects.notify(user, record.ringing(of: user), event) }
    }

    /// Notifies the members of an invite's group, except `others`, which are notified separately (GRP-2).
    private static func tellGroup(
        _ members: [UserID], of record: InviteRecord, but others: [UserID], _ event: EventBody,
        _ effects: inout Effects
    ) {
        for member in members where !others.contains(member) {
            effects.notify(member, record.ringing(of: member), event)
        }
    }

    /// Delivers the timeout payload, if the inviter gave one (INV-6, INV-7).
    private static func tellMissed(_ users: [UserID], of record: InviteRecord, _ effects: inout Effects) {
        guard let payload = record.timeoutPayload?.value else { return }
        let event = effects.body(of: .inviteMissed(InviteMissed(invite: record.id, payload: payload)))
        notify(users, of: record, event, &effects)
    }

    private static let unknownInvite = RPCError(
        .unknownInvite, "There is no such invite, or it ended a long time ago.")
}
