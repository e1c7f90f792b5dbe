import JSON
import SignalWire
import Tracing
package import Core

/// The exchange as a value: who is logged in, which invites are open, which calls and rooms there are.
///
/// It routes: what comes in goes to the part whose it is, and what concerns several parts is done here, one after the other.
/// A part changes its own state alone; what it wants done beside that, it asks for in ``Effects``. Sockets, clocks and
/// randomness are with the driver, ``ExchangeHub``.
package struct ExchangeCore: ProtocolCore, Sendable {
    /// Timers handled in one turn, and the number of their outputs past which the rest waits for the next turn.
    package static let timersAtOnce = 256

    private var settings: Settings
    package private(set) var accounts: Accounts
    private(set) var sessions: Sessions
    private(set) var invites: Invites
    private(set) var groups = Groups()
    private(set) var rooms = Rooms()
    private(set) var pushes: Pushes
    private(set) var streams: EventStreams
    private(set) var effects: Effects
    private var presence: PresenceSubscribers
    private var trunks: Trunks
    private var deadlines = Deadlines()

    /// - Parameters:
    ///   - run: Random bits, others for each run of the exchange, and for each shard.
    ///   - shard: Which one it is of several; its ids begin with it.
    package init(accounts: [Account], settings: Settings = Settings(), run: RunSeed, shard: Shard? = nil) {
        self.settings = settings
        self.accounts = Accounts(accounts, settings)
        sessions = Sessions(settings)
        invites = Invites(settings)
        pushes = Pushes(settings.push, seed: run.number)
        streams = EventStreams(window: settings.resumeWindow)
        effects = Effects(settings.kept, run: run, shard: shard, isTracing: settings.tracesInvites)
        presence = PresenceSubscribers(isAllowed: settings.tellsPresence)
        trunks = Trunks(settings.trunks)
    }

    /// Applies the settings that may change while the exchange runs (``ExchangeSettings/adopt(_:)``). Existing tokens stay as they are.
    package mutating func adopt(_ other: Settings) {
        settings.chosen.adopt(other.chosen)
        accounts.adopt(settings)
        sessions.adopt(settings)
        trunks.adopt(settings.trunks)
    }

    // MARK: - What happens

    package mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        effects.budget.act(for: nil)
        route(input, at: now, into: &outbox)
        announcePresence()
        carryOut(at: now, into: &outbox)
        recordChanges(at: now, into: &outbox)
        sweepDeadlines()
    }

    private mutating func route(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .tokenIssued(let token, let grant, let refresh, let mark):
            makeRoom(for: grant, issuer: nil, at: now, into: &outbox)
            accounts.issue(token, grant, refresh: refresh, mark: mark, at: now, &effects)
        case .tokenRefreshed(let old, let access, let refresh, let family):
            accounts.rotate(old, access: access, refresh: refresh, family: family, at: now, &effects)
        case .tokenPresented(let token, let grant, let login, let expires):
            admit(token, of: login ?? token, grant, expires: expires, at: now, into: &outbox)
        case .tokenUsed(let token): accounts.confirm(token, at: now)
        case .tokenRevoked(let token):
            if let login = accounts.login(of: token) { end(login, at: now, into: &outbox) }
        case .tokenCopied(let login): end(login, .copied, at: now, into: &outbox)
        case .userRevoked(let user): endLogins(of: user, at: now, into: &outbox)
        case .accountsChanged(let accounts): replaceAccounts(accounts, at: now, into: &outbox)
        case .badToken(let connection, let id, let error, let closes):
            refuse(error, to: id, from: connection, closes: closes, at: now, into: &outbox)
        case .connected(let connection): sessions.expectLogin(on: connection, at: now, &effects)
        case .attached(let connection, let endpoint, let token):
            let login = token.flatMap { accounts.login(of: $0) }
            sessions.attach(endpoint, on: connection, login, at: now, &effects)
        case .request(let connection, let id, let request):
            answer(request, id: id, from: connection, at: now, into: &outbox)
        case .malformed(let connection, let malformed):
            sessions.refuse(malformed, from: connection, at: now, &effects)
        case .disconnected(let connection): lose(connection, at: now, into: &outbox)
        case .notify(let user, let payload):
            let event = effects.body(of: .notification(NotificationReceived(payload: payload)))
            for session in sessions.sessions(of: user) { effects.notify(session.endpoint, event) }
        case .move(let within, let url):
            requestMoves(of: sessions.all.filter { !$0.isInternal }, within: within, to: url)
        case .pushAnswered(let id, let attempt, let answer):
            pushes.answered(id, attempt: attempt, answer, at: now, &effects)
        case .ordered(let number, let order):
            let result = obey(order, at: now, into: &outbox)
            carryOut(at: now, into: &outbox)
            outbox.append(.obeyed(number, result))
        case .goingDown: pushes.goDown()
        case .due(let deadline): meet(deadline, at: now, into: &outbox)
        case .pushesAreDue: pushes.tryDue(at: now, &effects)
        case .timer:
            // What is left is due at once, and has its turn after others'. Those count as well that put nothing out by
            // themselves: what they changed is written.
            var met = 0
            while met < Self.timersAtOnce, outbox.count < Self.timersAtOnce, let deadline = deadlines.takeDue(at: now) {
                meet(deadline, at: now, into: &outbox)
                carryOut(at: now, into: &outbox)
                met += 1
            }
            pushes.tryDue(at: now, &effects)
        }
    }

    /// Answers one request. The response comes before every event that the request causes.
    private mutating func answer(
        _ request: ClientRequest, id: RPCID, from connection: ConnectionID, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard sessions.isOpen(connection) else { return }
        effects.budget.act(for: sessions[connection]?.endpoint.principal)
        effects.count(\.requests)
        guard admit(id, on: connection, at: now, into: &outbox) else { return }
        let place = outbox.count
        do {
            let response = try perform(request, from: connection, at: now, into: &outbox)
            carryOut(at: now, into: &outbox)
            outbox.insert(.respond(connection, id, response), at: place)
        } catch {
            carryOut(at: now, into: &outbox)
            effects.count(\.refusals)
            outbox.insert(.refuse(connection, id, error), at: place)
            if case .sessionStart = request, error.isAboutToken { outbox.append(.close(connection, .tokenRejected)) }
        }
    }

    /// Whether a connection may send one more message; if not, the client receives an error, and is closed if it does
    /// not stop.
    private mutating func admit(
        _ id: RPCID, on connection: ConnectionID, at now: Instant, into outbox: inout [Output]
    ) -> Bool {
        switch sessions.admit(id, on: connection, at: now, &effects) {
        case .admitted: return true
        case .refused: return false
        case .closed:
            lose(connection, at: now, into: &outbox)
            return false
        }
    }

    /// Answers a request whose signed token was looked at, and is not good.
    private mutating func refuse(
        _ error: RPCError, to id: RPCID, from connection: ConnectionID, closes: Bool, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard sessions.isOpen(connection) else { return }
        effects.count(\.requests)
        guard admit(id, on: connection, at: now, into: &outbox) else { return }
        effects.count(\.refusals)
        effects.refuse(connection, id, error)
        if closes { effects.close(connection, .tokenRejected) }
    }

    // MARK: - Effects

    /// Does what parts have asked for, in order.
    private mutating func carryOut(at now: Instant, into outbox: inout [Output]) {
        guard effects.count > 0 else { return }
        for index in 0..<effects.count {
            switch effects[index] {
            case .notify(let principal, let audience, let event):
                notify(principal, audience, event, at: now, into: &outbox)
            case .sendTransient(let event, let principal, let connection):
                let told = streams.pass(event, to: principal, into: &outbox)
                effects.count(\.events)
                outbox.append(.event([connection], told))
            case .schedule(let deadline, let due): deadlines.add(deadline, due: due)
            case .plan(let task, let due): deadlines.plan(task, due: due)
            case .planPruning: planPruning(at: now)
            case .put(let output): outbox.append(output)
            }
        }
        effects.removeAll()
    }

    /// Numbers an event in a principal's stream and sends it to the devices of its audience.
    private mutating func notify(
        _ principal: Principal, _ audience: Audience, _ event: EventBody, at now: Instant, into outbox: inout [Output]
    ) {
        // Nothing is kept for a removed user: the next one of that name would find it.
        guard accounts.mayBeTold(principal) else { return }
        let told = streams.add(
            event, to: principal, for: audience, at: now, &effects.budget, &deadlines, into: &outbox)
        if !told.isKept { effects.count(\.unkeptEvents) }
        planPruning(at: now)
        let receivers = sessions.connections(of: principal, in: audience)
        guard !receivers.isEmpty else { return }
        effects.count(\.events, by: receivers.count)
        outbox.append(.event(receivers, told.event))
    }

    /// Charges what follows to `payer`; effects recorded before are carried out first.
    private mutating func act(for payer: Principal?, at now: Instant, into outbox: inout [Output]) {
        carryOut(at: now, into: &outbox)
        effects.budget.act(for: payer)
    }

    /// Notifies subscribers of users whose presence changed; sends nothing if the input left presence unchanged.
    private mutating func announcePresence() {
        let touched = sessions.takeTouched()
        if !touched.isEmpty { presence.announce(touched, accounts.directory, sessions, &effects) }
    }

    /// Outputs the changes of an input. The driver writes them before it carries out the input's other outputs.
    ///
    /// Parts track their own changes, so that code that changes an invite, a session or a token need not write it to
    /// disk. Events are output when they are numbered, and the ends of call records where their reasons are known.
    private mutating func recordChanges(at now: Instant, into outbox: inout [Output]) {
        accounts.recordUsers(into: &outbox)
        accounts.recordLogins(into: &outbox)
        sessions.note(rooms.takeChanged())
        sessions.recordChanges(rooms, &effects.budget, into: &outbox)
        for principal in streams.takeGone() { outbox.append(.persist(.streamForgotten(principal))) }
        groups.recordChanges(&effects.budget, into: &outbox)
        pushes.recordChanges(&effects.budget, into: &outbox)
        accounts.recordAcquaintances(into: &outbox)
        invites.recordChanges(at: now, &effects.budget, into: &outbox)
    }

    // MARK: - Deadlines

    package var nextDeadline: Instant? {
        guard let push = pushes.nextDeadline else { return deadlines.earliest }
        return min(deadlines.earliest ?? push, push)
    }

    /// When ``takeDue(at:atMost:)`` has something next; `nil` is never.
    package var nextDue: Instant? { mutating get { deadlines.earliest } }

    /// How many deadlines there are, whether they matter or not.
    var deadlineCount: Int { deadlines.count }

    /// Takes out at most `count` due deadlines, each with the payer whose turn it takes. The driver then passes each
    /// back as ``Input/due(_:)``.
    package mutating func takeDue(at now: Instant, atMost count: Int) -> [(deadline: Deadline, payer: Payer)] {
        var due: [(deadline: Deadline, payer: Payer)] = []
        for _ in 0..<count {
            guard let deadline = deadlines.takeDue(at: now) else { break }
            if matters(deadline) { due.append((deadline, payer(of: deadline))) }
        }
        return due
    }

    /// Takes deadlines out that are of no more interest, before they become more than the others: an invite may have a day
    /// to live and be cancelled at once.
    private mutating func sweepDeadlines() {
        guard deadlines.isDueForSweep else { return }
        var queue = deadlines
        queue.sweep { matters($0) }
        deadlines = queue
    }

    /// Whether anything would come of a deadline. It changes nothing: a closure that calls what is not `mutating` has the
    /// whole core copied for each call.
    private mutating func matters(_ deadline: Deadline) -> Bool {
        switch deadline {
        case .inviteTimesOut(let id): invites[id]?.isEnded == false
        case .inviteIsForgotten(let id): invites[id] != nil
        case .sessionIsForgotten(let id): sessions.end(of: id) != nil
        case .callMayBeOrphaned(let id): invites.calls[id] != nil
        case .loginIsDue(let connection): sessions.awaitsLogin(on: connection)
        case .tokenIsChecked(let connection): sessions[connection] != nil
        case .eventsExpire(let principal): streams.has(principal)
        case .accountIsMissed, .namesakesAreDue, .tokensAreSwept, .pruningIsDue, .eventsArePruned: true
        }
    }

    /// Does what is due; much of it has long been settled otherwise.
    private mutating func meet(_ deadline: Deadline, at now: Instant, into outbox: inout [Output]) {
        act(for: nil, at: now, into: &outbox)
        switch deadline {
        case .inviteTimesOut(let id): timeOutInvite(id, at: now, into: &outbox)
        case .inviteIsForgotten(let id): invites.forget(id)
        case .accountIsMissed(let user): forgetRemoved(user, at: now, into: &outbox)
        case .namesakesAreDue: admitNamesakes(at: now, into: &outbox)
        case .sessionIsForgotten(let id):
            if sessions.isOver(id, at: now) { giveUp(id, at: now, into: &outbox) }
        case .callMayBeOrphaned(let id):
            effects.budget.act(for: invites.calls[id]?.inviter.principal)
            invites.dropOrphan(id, sessions, at: now, &effects)
        case .tokensAreSwept:
            deadlines.begin(.tokenSweep)
            accounts.sweep(at: now, &effects)
        case .tokenIsChecked(let connection):
            if sessions.checkToken(on: connection, at: now, &effects) { lose(connection, at: now, into: &outbox) }
        case .pruningIsDue: prune(at: now, into: &outbox)
        case .eventsExpire(let principal):
            streams.expire(principal, at: now, &effects.budget, &deadlines, into: &outbox)
        case .eventsArePruned:
            deadlines.begin(.eventPruning)
            outbox.append(.persist(.eventsPruned(before: now.advanced(by: .zero - settings.resumeWindow))))
        case .loginIsDue(let connection): sessions.closeOverdue(connection, at: now, &effects)
        }
    }

    /// Looks at what is too old to be kept every ``Settings/pruningInterval``, for as long as anything is kept.
    private mutating func planPruning(at now: Instant) {
        deadlines.plan(.pruning, due: now.advanced(by: settings.pruningInterval))
    }

    /// Drops events that are too old for any device to resume with, and old call records.
    private mutating func prune(at now: Instant, into outbox: inout [Output]) {
        deadlines.begin(.pruning)
        let eventsBefore = now.advanced(by: .zero - settings.resumeWindow)
        let recordsBefore = now.advanced(by: .zero - settings.callRecordRetention)
        outbox.append(.persist(.pruned(eventsBefore: eventsBefore, recordsBefore: recordsBefore)))
        let deadBefore = now.advanced(by: .zero - settings.push.chosen.deadRetention)
        outbox.append(.persist(.deadPushesPruned(before: deadBefore)))
        if streams.isKeeping { planPruning(at: now) }
    }

    // MARK: - Requests

    /// Gives a request to the part whose it is.
    private mutating func perform(
        _ request: ClientRequest, from connection: ConnectionID, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> ClientResponse {
        switch request {
        case .ping: return .empty
        case .sessionStart(let params):
            return .session(try startSession(params, on: connection, at: now, into: &outbox))
        case .sessionRenew(let params): return .renewal(try renew(params, try session(on: connection), at: now))
        case .sessionEnd: endSession(try session(on: connection), at: now, into: &outbox)
        case .deviceRegister(let params): try register(params, try member(on: connection), at: now)
        case .deviceUnregister:
            let session = try member(on: connection)
            sessions.unregister(session.connection)
            pushes.setTargets([], for: session.endpoint)
        case .presenceSubscribe:
            return .presence(try presence.subscribe(try member(on: connection), accounts.directory, sessions))
        case .presenceUnsubscribe: presence.unsubscribe(try member(on: connection).connection)
        case .inviteSend, .inviteAccept, .inviteReject, .inviteCancel, .inviteModify, .inviteList, .callSignal,
            .callProbe, .callEnd:
            return try perform(aboutInvite: request, from: try member(on: connection), at: now, into: &outbox)
        case .groupCreate, .groupJoin, .groupLeave, .groupDismiss, .groupMembers, .groupList:
            return try perform(aboutGroup: request, from: try member(on: connection).endpoint.user)
        case .roomJoin(let params): return .room(try joinRoom(params, try session(on: connection), at: now))
        case .roomLeave(let params): try rooms.leave(params.room, try session(on: connection).id, &effects)
        case .roomSignal(let params): try rooms.pass(params, from: try session(on: connection).id, &effects)
        }
        return .empty
    }

    private mutating func perform(
        aboutInvite request: ClientRequest, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> ClientResponse {
        switch request {
        case .inviteSend(let params): return .invite(try sendInvite(params, from: session, at: now, into: &outbox))
        case .inviteList(let params): return .invites(invites.list(params, of: session.endpoint.user, at: now))
        case .inviteAccept(let params):
            try answerInvite(params.invite, .accepted, params.data, from: session, at: now, into: &outbox)
        case .inviteReject(let params):
            try answerInvite(params.invite, .rejected, params.data, from: session, at: now, into: &outbox)
        case .inviteCancel(let params):
            let record = try invites.toCancel(params, from: session, groups, &effects)
            withdraw(record, params.data, at: now, into: &outbox)
        case .inviteModify(let params):
            try trunks.check(params, of: invites[params.invite])
            try invites.modify(params, from: session, groups, &effects)
        case .callSignal(let params):
            try trunks.check(params, accounts.directory)
            try invites.pass(params, from: session, &effects)
        case .callProbe(let params):
            return .probe(try invites.probe(params, from: session.endpoint, sessions, at: now))
        case .callEnd(let params): try invites.endCall(params, from: session.endpoint, at: now, &effects)
        case .ping, .sessionStart, .sessionRenew, .sessionEnd, .deviceRegister, .deviceUnregister, .presenceSubscribe,
            .presenceUnsubscribe, .groupCreate, .groupJoin, .groupLeave, .groupDismiss, .groupMembers, .groupList,
            .roomJoin, .roomLeave, .roomSignal:
            break
        }
        return .empty
    }

    private mutating func perform(
        aboutGroup request: ClientRequest, from user: UserID
    ) throws(RPCError) -> ClientResponse {
        switch request {
        case .groupCreate(let params):
            return .group(
                try groups.create(params, by: user, accounts.directory, accounts.acquaintances, &effects))
        case .groupMembers(let params): return .members(try groups.listMembers(of: params.group, for: user))
        case .groupList(let params): return .groups(groups.list(params, of: user))
        case .groupJoin(let params): try groups.join(params.group, user, &effects)
        case .groupLeave(let params): try groups.leave(params.group, user, &effects)
        case .groupDismiss(let params): dismiss(try groups.toDismiss(params.group, by: user))
        case .ping, .sessionStart, .sessionRenew, .sessionEnd, .deviceRegister, .deviceUnregister, .presenceSubscribe,
            .presenceUnsubscribe, .inviteSend, .inviteAccept, .inviteReject, .inviteCancel, .inviteModify, .inviteList,
            .callSignal, .callProbe, .callEnd, .roomJoin, .roomLeave, .roomSignal:
            break
        }
        return .empty
    }

    /// The session on a connection; without one nothing works (AUTH-6).
    private func session(on connection: ConnectionID) throws(RPCError) -> Session {
        guard let session = sessions[connection] else {
            throw RPCError(.notAuthenticated, "Log in with session.start first.")
        }
        return session
    }

    /// The session on a connection, if it may do more than be in rooms (AUTH-3, AUTH-5).
    private func member(on connection: ConnectionID) throws(RPCError) -> Session {
        let session = try session(on: connection)
        guard !session.isAnonymous else {
            throw RPCError(.notAllowed, "An anonymous login may only join rooms by name.")
        }
        guard session.room == nil else {
            throw RPCError(.notAllowed, "A login with a token for a session may only join that session.")
        }
        return session
    }

    private mutating func joinRoom(
        _ params: RoomJoin, _ session: Session, at now: Instant
    ) throws(RPCError) -> RoomJoin.Result {
        try RequestChecks.check(params)
        var shown: Grant?
        if let token = params.token { shown = try accounts.grant(for: token, at: now) }
        return try rooms.join(params, session, shown: shown, sessions, &effects)
    }

    private mutating func dismiss(_ group: Group) {
        invites.leave(group.id)
        groups.dismiss(group, &effects)
    }

    // MARK: - Invites

    private mutating func sendInvite(
        _ params: InviteSend, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> InviteSend.Result {
        if let known = try invites.known(params, from: session) {
            return InviteSend.Result(invite: known.id, invitees: known.invitees)
        }
        let inviter = session.endpoint
        var params = params
        let departure = try trunks.route(&params, from: inviter, accounts.directory, at: now) { [invites] id in
            invites[id]?.isEnded != false && invites.calls.calls(of: id).isEmpty
        }
        let invitees = try accounts.directory.users(called: params.to)
        var group: Group?
        if let id = params.group { group = try groups.group(id, of: inviter.user, asking: invitees) }
        if params.onlineOnly == true { try sessions.checkOnline(invitees, but: inviter) }
        let transfer = try invites.vouch(for: &params, to: invitees, from: inviter)
        let (record, given) = try invites.send(
            params, to: invitees, in: group, from: inviter, accounts.acquaintances, reach: pushes.reach(of: invitees),
            at: now, &effects)
        if let transfer { invites.note(record.id, transfer) }
        if let departure { trunks.note(departure, record.id, at: now) }
        for invitee in invitees { accounts.meet(inviter.user, invitee, at: now) }
        traceSent(record, params.data, at: now)
        carryOut(at: now, into: &outbox)
        pushes.push(record, to: record.invitees, sessions, at: now, &effects)
        for place in given {
            effects.note(.inviteGaveWay(place.invite, with: place.invitee))
            timeOutInvite(place.invite, for: place.invitee, as: .gaveWay, at: now, into: &outbox)
        }
        if !given.isEmpty { act(for: inviter.principal, at: now, into: &outbox) }
        return InviteSend.Result(invite: record.id, invitees: record.invitees)
    }

    /// Puts out that an invite was sent, and to how many devices, if invites are traced.
    private mutating func traceSent(_ record: InviteRecord, _ data: JSONValue?, at now: Instant) {
        guard effects.isTracing else { return }
        let origin = InviteStep.Origin(
            inviter: record.inviter.user, invitees: record.invitees,
            parent: data?[Self.traceKey]?.string.flatMap { TraceContext($0) },
            isForeign: trunks.includes(record.inviter))
        effects.trace(record.id, .sent(origin), at: now)
        for invitee in record.invitees {
            let devices = sessions.connections(of: .account(invitee), in: record.ringing(of: invitee)).count
            if devices > 0 { effects.trace(record.id, .delivered(invitee, devices: devices), at: now) }
        }
    }

    /// The key of an invite's data that has the caller's span.
    private static let traceKey = "traceparent"

    private mutating func answerInvite(
        _ id: InviteID, _ action: InviteHandled.Action, _ data: JSONValue?, from session: Session, at now: Instant,
        into outbox: inout [Output]
    ) throws(RPCError) {
        let endpoint = session.endpoint
        guard let record = try invites.answer(id, action, data, from: session, groups, at: now, &effects) else {
            return
        }
        effects.trace(id, .answered(endpoint.user, action), at: now)
        if action == .accepted { accounts.meet(endpoint.user, record.inviter.user, at: now) }
        let end = Pushes.End(reason: action.rawValue, device: endpoint.device)
        finish(record, for: [endpoint.user], end, at: now, into: &outbox)
    }

    /// Withdraws an invite from the invitees that have not answered.
    private mutating func withdraw(
        _ invite: InviteRecord, _ data: JSONValue?, at now: Instant, into outbox: inout [Output]
    ) {
        let (record, released) = invites.withdraw(invite, data, groups, &effects)
        guard !released.isEmpty else { return }
        effects.trace(record.id, .ended(.cancelled), at: now)
        let end = Pushes.End(reason: Pushes.End.cancelled, payload: record.timeoutPayload)
        finish(record, for: released, end, at: now, into: &outbox)
    }

    /// The ttl has ended, or `user` alone can no longer answer.
    private mutating func timeOutInvite(
        _ id: InviteID, for user: UserID? = nil, as cause: InviteStep.End = .timedOut, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard let inviter = invites[id]?.inviter else { return }
        act(for: inviter.principal, at: now, into: &outbox)
        guard let (record, released) = invites.timeOut(id, for: user, groups, &effects) else { return }
        effects.trace(id, .ended(cause), at: now)
        let end = Pushes.End(reason: Pushes.End.timedOut, payload: record.timeoutPayload)
        finish(record, for: released, end, at: now, into: &outbox)
    }

    /// An invite ended for some of its users: notifies those of their devices that are not connected, and its inviter
    /// if it ended for all.
    private mutating func finish(
        _ record: InviteRecord, for users: [UserID], _ end: Pushes.End, at now: Instant, into outbox: inout [Output]
    ) {
        carryOut(at: now, into: &outbox)
        pushes.pushEnd(of: record, for: users, end, sessions, at: now, &effects)
        guard record.isEnded else { return }
        invites.finish(record, at: now, &effects)
        effects.trace(record.id, .finished, at: now)
    }

    // MARK: - Sessions that begin

    private mutating func startSession(
        _ params: SessionStart, on connection: ConnectionID, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> SessionStart.Result {
        guard sessions[connection] == nil else {
            throw RPCError(.notAllowed, "This connection already has a session; end it first.")
        }
        let grant = try accounts.grant(for: params.token, at: now)
        try RequestChecks.check(params, against: grant)
        let token = SecretDigest(of: params.token.secret)
        accounts.confirm(token, at: now)
        let endpoint = Endpoint(sessions.principal(of: grant, accounts.login(of: token) ?? token), params.device.id)
        try sessions.checkCount(with: endpoint)
        effects.budget.act(for: endpoint.principal)
        try effects.afford(Weight.record + Weight.of(params.device), .sequel)
        let kept = takeOver(endpoint, grant, params.resume, at: now, into: &outbox)

        var session =
            kept.resumed?.session
            ?? Session(
                id: effects.nextID("session"), name: effects.nextID("connection"), connection: connection,
                endpoint: endpoint, room: grant.room, device: params.device)
        session.connection = connection
        session.device = params.device
        session.tokenCheck = nil
        sessions.add(session)
        if session.isRegistered { pushes.connect(endpoint) }
        watch(token, on: connection, at: now)
        sessions.noteLogins(of: endpoint.principal)
        effects.count(\.sessions)
        effects.note(.sessionStarted(endpoint, connection, resumed: kept.resumed != nil))
        carryOut(at: now, into: &outbox)
        for event in kept.resumed?.missed ?? [] { outbox.append(.event([connection], event)) }
        // What the return itself causes comes after the answer, and has a higher number than it names.
        let sequence = streams.sequence(of: endpoint.principal)
        if kept.wasMissed { tellPeers(of: session, ExchangeEvent.streamResumed) }

        let mayDoMore = !grant.isAnonymous && grant.room == nil
        let publicIDs = mayDoMore ? accounts.account(id: grant.user)?.publicIDs ?? [] : []
        return SessionStart.Result(
            session: session.id, connection: session.name, user: grant.user, publicIDs: publicIDs,
            resumed: kept.resumed != nil, sequence: sequence,
            keepaliveSeconds: max(1, Int(settings.keepalive.seconds)), isAnonymous: !mayDoMore)
    }

    /// What is left of a device's earlier sessions.
    private struct Kept {
        /// The session that the device resumes, and the events that it missed.
        var resumed: (session: Session, missed: [DeliveredEvent])?
        /// Peers were notified that the device was dropped.
        var wasMissed: Bool
    }

    /// Ends what is left of the device's earlier connection, and finds the session that the device can resume (CONN-5).
    private mutating func takeOver(
        _ endpoint: Endpoint, _ grant: Grant, _ resume: SessionStart.Resume?, at now: Instant,
        into outbox: inout [Output]
    ) -> Kept {
        if let earlier = sessions.session(at: endpoint) {
            // The device is here again, so its earlier connection is dead, whether the exchange noticed or not; or it
            // has moved. Peers are not notified of a drop.
            effects.close(earlier.connection, .policy("replaced by a newer connection of this device"))
            part(earlier, isMissed: false, at: now, into: &outbox)
        }
        let left = sessions.detached(of: endpoint.principal).filter { $0.session.endpoint == endpoint }
        var kept = Kept(resumed: nil, wasMissed: left.contains(where: \.isMissed))
        for candidate in left {
            _ = sessions.takeDetached(candidate.session.id)
            carryOut(at: now, into: &outbox)
            if let resume, resume.session == candidate.session.id, now < candidate.until,
                candidate.session.room == grant.room,
                let missed = streams.missed(
                    after: resume.after, by: endpoint, isRegistered: candidate.session.isRegistered)
            {
                kept.resumed = (candidate.session, missed)
            } else {
                rooms.leaveAll(candidate.session.id, reason: "connectionLost", &effects)
            }
        }
        carryOut(at: now, into: &outbox)
        return kept
    }

    /// Binds a session to `token` from now on.
    private mutating func watch(_ token: SecretDigest, on connection: ConnectionID, at now: Instant) {
        guard let login = accounts.login(of: token), let ends = accounts.expiry(of: token) else { return }
        sessions.watch(connection, login, ends: ends, at: now, &effects)
    }

    /// Continues a session with a new token; an invalid token changes nothing.
    private mutating func renew(
        _ params: SessionRenew, _ session: Session, at now: Instant
    ) throws(RPCError) -> SessionRenew.Result {
        let token = SecretDigest(of: params.token.secret)
        let grant = try accounts.grant(for: token, at: now)
        guard grant.user == session.endpoint.user, grant.isAnonymous == session.isAnonymous else {
            throw RPCError(.tokenRejected, "The token and this session belong to different users.")
        }
        guard grant.room?.room == session.room?.room else {
            throw RPCError(.tokenForAnotherSession, "The token is valid for another session.")
        }
        if let login = accounts.login(of: token), sessions.isOfAnotherGuest(login, grant, than: session) {
            throw RPCError(.tokenRejected, "The token and this session belong to different guests.")
        }
        accounts.confirm(token, at: now)
        watch(token, on: session.connection, at: now)
        sessions.noteLogins(of: session.endpoint.principal)
        let ends = accounts.expiry(of: token) ?? now
        return SessionRenew.Result(expiresIn: now.duration(to: ends).seconds)
    }

    private mutating func register(
        _ params: DeviceRegister, _ session: Session, at now: Instant
    ) throws(RPCError) {
        let device = params.device
        try RequestChecks.check(device)
        guard device.id == session.endpoint.device else {
            throw RPCError(.invalidParams, "device.id must be the one that session.start returned.")
        }
        let targets = params.push ?? device.pushToken.map { [.init(kind: "push", token: $0)] }
        if let targets {
            try RequestChecks.check(targets)
            try effects.afford(Weight.of(targets), .sequel)
            pushes.setTargets(targets, for: session.endpoint)
        }
        pushes.connect(session.endpoint)
        sessions.register(session.connection, as: device)
        // A trunk that has just started has no calls. Its earlier ones would count as their callers' until it
        // disconnects.
        if params.start == .cold, trunks.includes(session.endpoint) {
            invites.endCalls(of: session.endpoint, at: now, &effects)
        }
        invites.synchronize(session.endpoint, params.start ?? .cold, groups, at: now, &effects)
        guard effects.isTracing else { return }
        // Such as those that a push has woken.
        let user = session.endpoint.user
        for record in invites.toAnswer(by: user) where record.inviter != session.endpoint {
            effects.trace(record.id, .delivered(user, devices: 1), at: now)
        }
    }

    // MARK: - Sessions that end

    /// A clean goodbye: the device's calls end with it (CONN-9).
    private mutating func endSession(_ session: Session, at now: Instant, into outbox: inout [Output]) {
        act(for: session.endpoint.principal, at: now, into: &outbox)
        invites.endCalls(of: session.endpoint, at: now, &effects)
        rooms.leaveAll(session.id, reason: "disconnected", &effects)
        carryOut(at: now, into: &outbox)
        presence.unsubscribe(session.connection)
        sessions.remove(session.connection)
        if let login = session.login { accounts.use(login, at: now) }
        forgetStranger(session, at: now, into: &outbox)
        effects.note(.sessionEnded(session.endpoint, session.connection))
        sessions.expectLogin(on: session.connection, at: now, &effects)
    }

    /// The socket is gone. Calls, invites and places in rooms stay: the device may come back (CALL-6, INV-13).
    private mutating func lose(_ connection: ConnectionID, at now: Instant, into outbox: inout [Output]) {
        sessions.removeSocket(connection)
        guard let session = sessions[connection] else { return }
        act(for: session.endpoint.principal, at: now, into: &outbox)
        part(session, isMissed: true, at: now, into: &outbox)
        tellPeers(of: session, ExchangeEvent.streamDropped)
        if session.isRegistered {
            carryOut(at: now, into: &outbox)
            pushes.pushOpen(invites, to: session.endpoint, sessions, at: now, &effects)
        }
        if let oldest = sessions.surplus(of: session.endpoint.principal) { giveUp(oldest, at: now, into: &outbox) }
    }

    /// Takes a session off its connection, and keeps it for the resume window.
    private mutating func part(
        _ session: Session, isMissed: Bool, at now: Instant, into outbox: inout [Output]
    ) {
        carryOut(at: now, into: &outbox)
        presence.unsubscribe(session.connection)
        if let login = session.login { accounts.use(login, at: now) }
        let until = sessions.part(session, isMissed: isMissed, at: now, &effects)
        for call in invites.calls.calls(of: session.endpoint) {
            effects.schedule(.callMayBeOrphaned(call.id), due: until)
        }
        effects.note(.sessionLost(session.endpoint, session.connection))
    }

    /// No device resumed the session in time.
    private mutating func giveUp(_ id: SessionID, at now: Instant, into outbox: inout [Output]) {
        guard let left = sessions.takeDetached(id) else { return }
        act(for: left.session.endpoint.principal, at: now, into: &outbox)
        rooms.leaveAll(id, reason: "connectionLost", &effects)
        forgetStranger(left.session, at: now, into: &outbox)
    }

    /// A principal without an account ceases to exist with its last session, and its event log is deleted.
    private mutating func forgetStranger(_ session: Session, at now: Instant, into outbox: inout [Output]) {
        let principal = session.endpoint.principal
        sessions.noteLogins(of: principal)
        guard principal.kind != .account, !sessions.has(principal) else { return }
        carryOut(at: now, into: &outbox)
        streams.end(principal, &effects)
    }

    /// Notifies the peers of a session, in its rooms and its device's calls, that its connection is lost or restored
    /// (CONN-8).
    private mutating func tellPeers(of session: Session, _ event: (StreamChange) -> ExchangeEvent) {
        rooms.tellOthers(of: session, event, &effects)
        invites.tellPeers(of: session, event, &effects)
    }

    /// Asks devices to connect again, here or elsewhere (CONN-12); now or never, for who connects has moved.
    private mutating func requestMoves(of asked: [Session], within: Duration, to url: String?) {
        let event = effects.body(
            of: .moveRequested(MoveRequested(withinSeconds: max(0, within.seconds), webSocketURL: url)))
        for session in asked { effects.sendTransient(event, to: session) }
    }

    // MARK: - Logins

    private mutating func admit(
        _ token: SecretDigest, of login: TokenStore.LoginID, _ grant: Grant, expires: Instant, at now: Instant,
        into outbox: inout [Output]
    ) {
        let issuer = grant.application?.text ?? ""
        if accounts.grant(of: login) == nil { makeRoom(for: grant, issuer: issuer, at: now, into: &outbox) }
        accounts.admit(token, of: login, grant, issuer: issuer, expires: expires, at: now, &effects)
    }

    /// Ends the least recently used login of a user who has as many as it may have. A login with a session is in use.
    private mutating func makeRoom(
        for grant: Grant, issuer: String?, at now: Instant, into outbox: inout [Output]
    ) {
        guard !grant.isAnonymous else { return }
        let uses = sessions.uses(of: grant.user)
        guard let login = accounts.surplusLogin(for: grant, issuer: issuer, uses: uses) else { return }
        end(login, .replaced, at: now, into: &outbox)
    }

    /// Ends a login with its sessions, calls included (AUTH-9).
    private mutating func end(
        _ login: TokenStore.LoginID, _ cause: LoginEnd = .loggedOut, at now: Instant, into outbox: inout [Output]
    ) {
        guard let grant = accounts.end(login, cause, at: now) else { return }
        endSessions(of: sessions.principal(of: grant, login), at: now, into: &outbox) { $0.login == login }
        effects.note(.loginEnded(grant.user, cause))
    }

    /// Ends all logins of a user, and every session that was begun with one.
    private mutating func endLogins(of user: UserID, at now: Instant, into outbox: inout [Output]) {
        for login in accounts.logins(of: user) { end(login, at: now, into: &outbox) }
        // A session may be there for a while after its login's last token has ended.
        for principal in sessions.principals(called: user) {
            endSessions(of: principal, at: now, into: &outbox) { $0.login != nil }
        }
    }

    /// Ends those of a principal's sessions that satisfy the predicate, disconnected ones too.
    private mutating func endSessions(
        of principal: Principal, because reason: CloseReason = .loggedOut, at now: Instant, into outbox: inout [Output],
        where holds: (Session) -> Bool
    ) {
        for session in sessions.sessions(of: principal) where holds(session) {
            endSession(session, at: now, into: &outbox)
            effects.close(session.connection, reason)
        }
        for left in sessions.detached(of: principal).map(\.session) where holds(left) {
            if sessions.session(at: left.endpoint) == nil {
                invites.endCalls(of: left.endpoint, at: now, &effects)
            }
            giveUp(left.id, at: now, into: &outbox)
        }
    }

    // MARK: - The operator

    /// Does what the operator wants, or changes nothing.
    private mutating func obey(
        _ order: OperatorOrder, at now: Instant, into outbox: inout [Output]
    ) -> OperatorResult {
        switch order {
        case .logOut(let user):
            let principals = sessions.principals(called: user)
            guard accounts.account(id: user) != nil || !principals.isEmpty || !accounts.logins(of: user).isEmpty else {
                return .refused(.unknownUser)
            }
            let before = principals.reduce(0) { $0 + sessions.count(of: $1) }
            endLogins(of: user, at: now, into: &outbox)
            // Those that no login has opened, such as streams with a stream token.
            for principal in principals { endSessions(of: principal, at: now, into: &outbox) { _ in true } }
            return .done(ended: before - sessions.principals(called: user).reduce(0) { $0 + sessions.count(of: $1) })
        case .endSession(let user, let device):
            var ended = 0
            // A guest's or visitor's device, too.
            for principal in sessions.principals(called: user) {
                let before = sessions.count(of: principal)
                endSessions(of: principal, because: .sessionEnded, at: now, into: &outbox) {
                    $0.endpoint.device == device
                }
                ended += before - sessions.count(of: principal)
            }
            return ended == 0 ? .refused(.noSession) : .done(ended: ended)
        case .endInvite(let id):
            guard let record = invites[id] else { return .refused(.unknownInvite) }
            guard !record.isEnded else { return .refused(.inviteEnded) }
            let pending = record.pending.count
            effects.note(.inviteEndedByOperator(id))
            timeOutInvite(id, as: .operatorEnded, at: now, into: &outbox)
            return .done(ended: pending)
        case .endCall(let id, let invitee):
            let calls = invites.calls.calls(of: id).filter { invitee == nil || $0.invitee.user == invitee }
            guard let call = calls.first else { return .refused(.unknownCall) }
            guard calls.count == 1 else { return .refused(.severalCalls) }
            act(for: call.inviter.principal, at: now, into: &outbox)
            invites.endByOperator(call, at: now, &effects)
            return .done(ended: 1)
        case .removeFromRoom(let room, let user, let connection):
            return expel(user, connection, from: room, at: now, into: &outbox)
        case .removeFromGroup(let id, let user):
            guard let group = groups[id] else { return .refused(.unknownGroup) }
            guard group.members.contains(user) else { return .refused(.noMember) }
            guard group.owner != user else { return .refused(.isOwner) }
            act(for: .account(user), at: now, into: &outbox)
            groups.remove(user, from: group, &effects)
            effects.note(.memberRemoved(id, user))
            return .done(ended: 1)
        case .move(let user, let device, let within, let url):
            let principals = sessions.principals(called: user)
            guard accounts.account(id: user) != nil || !principals.isEmpty else { return .refused(.unknownUser) }
            let asked = principals.flatMap { sessions.sessions(of: $0) }
                .filter { !$0.isInternal && (device == nil || $0.endpoint.device == device) }
            guard !asked.isEmpty else { return .refused(.noSession) }
            requestMoves(of: asked, within: within, to: url)
            for session in asked { effects.note(.moveRequested(session.endpoint, session.connection)) }
            return .done(ended: asked.count)
        }
    }

    /// Takes a user out of a room, or one of its sessions.
    private mutating func expel(
        _ user: UserID, _ connection: ConnectionName?, from room: RoomName, at now: Instant,
        into outbox: inout [Output]
    ) -> OperatorResult {
        let occupants = rooms.occupants(of: room)
        guard !occupants.isEmpty else { return .refused(.unknownRoom) }
        let expelled = occupants.filter {
            $0.endpoint.user == user && (connection == nil || $0.participant.connection == connection)
        }
        guard let first = expelled.first else { return .refused(.noMember) }
        act(for: first.endpoint.principal, at: now, into: &outbox)
        rooms.expel(expelled, from: room, &effects)
        for occupant in expelled { effects.note(.participantRemoved(room, occupant.endpoint)) }
        return .done(ended: expelled.count)
    }

    // MARK: - Removed users

    /// There are other accounts from now on. A user with the name of another one takes its place once nothing is left of
    /// that one.
    private mutating func replaceAccounts(_ accounts: [Account], at now: Instant, into outbox: inout [Output]) {
        let others = self.accounts.holdNamesakes(of: accounts)
        use(others, at: now, into: &outbox)
        if others.count < accounts.count { admitNamesakes(at: now, into: &outbox) }
    }

    private mutating func admitNamesakes(at now: Instant, into outbox: inout [Output]) {
        let namesakes = accounts.takeNamesakes()
        for account in namesakes { forgetRemoved(account.id, at: now, into: &outbox) }
        // A user does not receive what was meant for another one of the name.
        carryOut(at: now, into: &outbox)
        use(accounts.directory.all + namesakes, at: now, into: &outbox)
    }

    /// Logs out users that have no account any more, or whose logins were revoked.
    private mutating func use(_ accounts: [Account], at now: Instant, into outbox: inout [Output]) {
        let replacement = self.accounts.replace(with: accounts)
        for (user, isRemoved) in replacement.loggedOut {
            endLogins(of: user, at: now, into: &outbox)
            guard isRemoved else { continue }
            endStream(of: user, at: now, into: &outbox)
            self.accounts.forget(user)
            forgetRemoved(user, at: now, into: &outbox)
        }
        // A stranger's name may have become a user's.
        for id in replacement.taken { endLogins(of: id, at: now, into: &outbox) }
    }

    /// Ends what a user without an account has left: sessions that the exchange began itself, and events, which a later
    /// user of the same name must not find on disk.
    private mutating func endStream(of user: UserID, at now: Instant, into outbox: inout [Output]) {
        endSessions(of: .account(user), at: now, into: &outbox) { _ in true }
        carryOut(at: now, into: &outbox)
        streams.end(.account(user), &effects)
    }

    /// Ends the invites of a user without an account, those to it, its calls, its part in groups, and its pushes: a
    /// later user of the same name must not inherit them.
    private mutating func forgetRemoved(_ user: UserID, at now: Instant, into outbox: inout [Output]) {
        guard accounts.account(id: user) == nil else { return }
        pushes.forget(user)
        act(for: .account(user), at: now, into: &outbox)
        // No other user could withdraw them, and they occupy slots.
        for record in invites.sent(by: user).compactMap({ invites[$0] }) {
            withdraw(record, nil, at: now, into: &outbox)
        }
        invites.freeKeys(of: user)
        for id in invites.received(by: user) {
            timeOutInvite(id, for: user, at: now, into: &outbox)
            invites.strike(user, from: id)
        }
        // Calls of devices that are away end as well.
        for call in invites.calls.all {
            let own = [call.inviter, call.invitee].first { $0.principal == .account(user) }
            guard let own else { continue }
            act(for: call.inviter.principal, at: now, into: &outbox)
            invites.disconnect(call, own, at: now, &effects)
        }
        act(for: .account(user), at: now, into: &outbox)
        for group in groups.groups(of: user) {
            if group.owner == user { dismiss(group) } else { groups.remove(user, from: group, &effects) }
        }
    }

    // MARK: - Restarts

    /// Takes in what is on disk. For a core that has been given nothing yet; what is overdue is due at once (INV-16).
    ///
    /// No time that remains is longer than the whole time, so that a clock set back meanwhile holds nothing up for more
    /// than that.
    package mutating func restore(_ saved: Saved, at now: Instant) {
        accounts.restore(saved, at: now, &effects)
        for stored in saved.sessions {
            let session = sessions.restore(stored, at: now, &effects) { [accounts] in !accounts.isStanding($0) }
            if let session { rooms.restore(stored.places, of: session) }
        }
        for group in saved.groups {
            groups.restore(Group(group))
            miss(group.members, at: now)
        }
        for entry in saved.pushTargets {
            miss([entry.user], at: now)
            pushes.restore(entry.targets, for: Endpoint(user: entry.user, device: entry.device))
        }
        for invite in saved.invites {
            let hasAccount = accounts.account(id: invite.inviter) != nil
            miss(invites.restore(invite, hasAccount: hasAccount, at: now, &effects), at: now)
        }
        accounts.restore(saved.acquaintances)
        for push in saved.pendingPushes { pushes.restore(push, at: now) }
        for call in saved.calls {
            invites.restore(Call(call))
            let id = CallKey(invite: call.invite, invitee: call.invitee)
            // No device could resume while the exchange was down, however long that was.
            effects.schedule(.callMayBeOrphaned(id), due: now.advanced(by: settings.resumeWindow))
            miss([call.inviter, call.invitee], at: now)
        }
        var nothing: [Output] = []
        carryOut(at: now, into: &nothing)
        streams.restore(saved, at: now, &deadlines) { [accounts, sessions] principal in
            // Whether the principal may still resume to receive the events.
            principal.kind == .account ? accounts.account(id: principal.user) != nil : sessions.has(principal)
        }
        effects.goOn(afterBody: saved.events.map(\.body.number).max() ?? 0)
        if !saved.events.isEmpty || !saved.invites.isEmpty { planPruning(at: now) }
        effects.budget = counted
    }

    /// Who of them was removed while the exchange was down is dealt with as soon as it runs.
    private mutating func miss(_ users: [UserID], at now: Instant) {
        for user in users where accounts.account(id: user) == nil {
            effects.schedule(.accountIsMissed(user), due: now)
        }
    }

    /// A budget computed from all that is kept. Of events it is not known who caused them: they are the exchange's own
    /// until they go, within the resume window.
    var counted: Budget {
        var budget = Budget(settings.kept)
        invites.chargeAll(&budget)
        sessions.chargeAll(rooms, &budget)
        groups.chargeAll(&budget)
        pushes.chargeAll(&budget)
        for body in streams.bodies { budget.enterRestored(body) }
        return budget
    }

    /// Continues the counters of an earlier core.
    package mutating func goOn(from earlier: CoreCounters) { effects.goOn(from: earlier) }
}

extension RPCError {
    /// The token is no good, so that the same start fails again.
    fileprivate var isAboutToken: Bool {
        switch known {
        case .tokenExpired, .tokenRejected, .tokenWrongSignature, .tokenForAnotherSession, .tokenRevoked: true
        default: false
        }
    }
}
