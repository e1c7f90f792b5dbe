import SignalWire
import Timekeeping

/// Logging in and going away.
extension ExchangeCore {
    /// From now on the connection has a while to log in.
    mutating func expectLogin(on connection: ConnectionID, at now: Instant) {
        let due = now.advanced(by: settings.loginWindow)
        connections[connection, default: Connection(loginDue: due)].loginDue = due
        deadlines.add(.loginIsDue(connection), due: due)
    }

    mutating func startSession(
        _ params: SessionStart, on connection: ConnectionID, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> SessionStart.Result {
        guard sessions[connection] == nil else {
            throw RPCError(.notAllowed, "This connection has a session already; end it first.")
        }
        let grant = try grant(for: params.token, at: now)
        try Self.check(params, against: grant)
        try Self.check(params.device)
        let token = SecretDigest(of: params.token.secret)
        tokens.confirm(token, at: now)
        let endpoint = Endpoint(principal(of: grant, tokens.login(of: token) ?? token), params.device.id)
        let others = sessions.sessions(of: endpoint.principal).filter { $0.endpoint != endpoint }
        guard others.count < settings.sessionsPerUser else {
            throw RPCError(.tooManyRequests, "This user has \(settings.sessionsPerUser) sessions already.")
        }
        actsFor = endpoint.principal
        try afford(Weight.record + Weight.of(params.device), .sequel)
        let kept = takeOver(endpoint, grant, params.resume, at: now, into: &outbox)

        var session =
            kept.resumed?.session
            ?? Session(
                id: ids.next("session"), name: ids.next("connection"), connection: connection, endpoint: endpoint,
                room: grant.room, device: params.device)
        session.connection = connection
        session.device = params.device
        session.tokenCheck = nil
        sessions.add(session)
        if session.isRegistered { pushQueue.connect(endpoint) }
        watch(token, on: connection, at: now)
        noteLogins(of: endpoint.principal)
        count(\.sessions)
        outbox.append(.note(.sessionStarted(endpoint, connection, resumed: kept.resumed != nil)))
        for event in kept.resumed?.missed ?? [] { outbox.append(.event([connection], event)) }
        // What the return itself causes comes after the answer, and has a higher number than it names.
        let sequence = logs[endpoint.principal]?.sequence ?? 0
        if kept.wasMissed { tellResumed(session, at: now, into: &outbox) }

        let mayDoMore = !grant.isAnonymous && grant.room == nil
        let publicIDs = mayDoMore ? accounts.account(id: grant.user)?.publicIDs ?? [] : []
        return SessionStart.Result(
            session: session.id, connection: session.name, user: grant.user, publicIDs: publicIDs,
            resumed: kept.resumed != nil, sequence: sequence,
            keepaliveSeconds: max(1, Int(settings.keepalive.seconds)), isAnonymous: !mayDoMore)
    }

    /// What a token is good for, wherever it stands in a request.
    func grant(for token: Redacted<String>, at now: Instant) throws(RPCError) -> Grant {
        try tokens.grant(for: SecretDigest(of: token.secret), at: now)
    }

    /// A client that says whose token it has is refused if it has another's (AUTH-4, AUTH-8).
    private static func check(_ params: SessionStart, against grant: Grant) throws(RPCError) {
        if let user = params.user, user != grant.user {
            throw RPCError(.tokenRejected, "The token is another user's; log in as this one.")
        }
        if let application = params.application, application != grant.application {
            throw RPCError(.tokenRejected, "The token is another application's; log in with this one.")
        }
    }

    /// For whom a login is. A token for a room has nothing of the user's own, even if its bearer knows how one of the
    /// user's devices is called; and a guest has nothing of another who took the same name.
    func principal(of grant: Grant, _ login: TokenStore.LoginID) -> Principal {
        if let room = grant.room { return Principal(user: grant.user, kind: .visitor(room.room)) }
        return grant.isAnonymous ? guests.guest(called: grant.user, by: login) : .account(grant.user)
    }

    /// Gives a connection of the exchange's own a session; its device is the exchange's choice and receives no invites.
    /// If it was begun with a token of a login, it ends with that.
    mutating func attach(
        _ endpoint: Endpoint, on connection: ConnectionID, token: SecretDigest?, at now: Instant,
        into outbox: inout [Output]
    ) {
        connections[connection] = Connection(loginDue: now)
        sessions.add(
            Session(
                id: ids.next("session"), name: ids.next("connection"), connection: connection, endpoint: endpoint,
                login: token.flatMap { tokens.login(of: $0) }, isInternal: true,
                device: DeviceDescription(id: endpoint.device, name: endpoint.device.text)))
        count(\.sessions)
        outbox.append(.note(.sessionStarted(endpoint, connection, resumed: false)))
    }

    /// What is left of a device's earlier sessions.
    private struct Kept {
        /// The one that it goes on with, and what it missed.
        var resumed: (session: Session, missed: [ToldEvent])?
        /// Peers were told that the device was dropped.
        var wasMissed: Bool
    }

    /// Ends what is left of the device's earlier connection, and finds what it can go on with (CONN-5).
    private mutating func takeOver(
        _ endpoint: Endpoint, _ grant: Grant, _ resume: SessionStart.Resume?, at now: Instant,
        into outbox: inout [Output]
    ) -> Kept {
        if let earlier = sessions.session(at: endpoint) {
            // The device is here again, so that its earlier connection is dead, whether the exchange noticed or not;
            // or it has moved. Nobody hears of a drop.
            outbox.append(.close(earlier.connection, .policy("replaced by a newer connection of this device")))
            part(earlier, at: now, isMissed: false, into: &outbox)
        }
        let left = sessions.detached(of: endpoint.principal).filter { $0.session.endpoint == endpoint }
        var kept = Kept(resumed: nil, wasMissed: left.contains(where: \.isMissed))
        for candidate in left {
            _ = sessions.takeDetached(candidate.session.id)
            if let resume, resume.session == candidate.session.id, now < candidate.until,
                candidate.session.room == grant.room,
                let missed = (logs[endpoint.principal] ?? EventLog()).missed(
                    after: resume.after, by: endpoint.device, isRegistered: candidate.session.isRegistered)
            {
                kept.resumed = (candidate.session, missed)
            } else {
                leaveRooms(candidate.session.id, reason: "connectionLost", at: now, into: &outbox)
            }
        }
        return kept
    }

    /// A clean goodbye: the device's calls end with it (CONN-9).
    mutating func endSession(_ session: Session, at now: Instant, into outbox: inout [Output]) {
        actsFor = session.endpoint.principal
        endCalls(of: session.endpoint, at: now, into: &outbox)
        leaveRooms(session.id, reason: "disconnected", at: now, into: &outbox)
        presence.unsubscribe(session.connection)
        _ = sessions.remove(session.connection)
        if let login = session.login { tokens.use(login, at: now) }
        forgetStranger(session, into: &outbox)
        outbox.append(.note(.sessionEnded(session.endpoint, session.connection)))
        expectLogin(on: session.connection, at: now)
    }

    mutating func endCalls(of endpoint: Endpoint, at now: Instant, into outbox: inout [Output]) {
        for call in calls.calls(of: endpoint) {
            let duration = Int64(call.acceptedAt.duration(to: now).milliseconds)
            end(call, by: endpoint, reason: "disconnected", duration: duration, at: now, into: &outbox)
        }
    }

    /// The socket is gone. Calls, invites and places in rooms stay: the device may come back (CALL-6, INV-13).
    mutating func lose(_ connection: ConnectionID, at now: Instant, into outbox: inout [Output]) {
        connections[connection] = nil
        guard let session = sessions[connection] else { return }
        actsFor = session.endpoint.principal
        part(session, at: now, isMissed: true, into: &outbox)
        tellDropped(session, at: now, into: &outbox)
        if session.isRegistered { pushOpenInvites(to: session.endpoint, at: now, into: &outbox) }
        let left = sessions.detached(of: session.endpoint.principal)
        if left.count > settings.sessionsPerUser, let oldest = left.first {
            giveUp(oldest.session.id, at: now, into: &outbox)
        }
    }

    /// Takes a session off its connection, and keeps it for the resume window.
    private mutating func part(
        _ session: Session, at now: Instant, isMissed: Bool, into outbox: inout [Output]
    ) {
        connections[session.connection] = nil
        presence.unsubscribe(session.connection)
        _ = sessions.remove(session.connection)
        if let login = session.login { tokens.use(login, at: now) }
        let until = now.advanced(by: settings.resumeWindow)
        sessions.detach(session, until: until, isMissed: isMissed)
        deadlines.add(.sessionIsForgotten(session.id), due: until)
        for call in calls.calls(of: session.endpoint) { deadlines.add(.callMayBeOrphaned(call.id), due: until) }
        outbox.append(.note(.sessionLost(session.endpoint, session.connection)))
    }

    /// Nobody went on with a session in time.
    mutating func giveUp(_ id: SessionID, at now: Instant, into outbox: inout [Output]) {
        guard let left = sessions.takeDetached(id) else { return }
        actsFor = left.session.endpoint.principal
        leaveRooms(id, reason: "connectionLost", at: now, into: &outbox)
        forgetStranger(left.session, into: &outbox)
    }

    /// Who has no account is nobody once the last session is gone, and leaves no event log behind.
    private mutating func forgetStranger(_ session: Session, into outbox: inout [Output]) {
        let principal = session.endpoint.principal
        noteLogins(of: principal)
        guard principal.kind != .account, !sessions.has(principal) else { return }
        dropLog(of: principal)
        outbox.append(.persist(.streamForgotten(principal)))
    }

    mutating func register(
        _ params: DeviceRegister, _ session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        let device = params.device
        try Self.check(device)
        guard device.id == session.endpoint.device else {
            throw RPCError(.invalidParams, "device.id must be the one that session.start gave.")
        }
        let targets = params.push ?? device.pushToken.map { [.init(kind: "push", token: $0)] }
        if let targets {
            try Self.check(targets)
            try afford(Weight.of(targets), .sequel)
            setPushTargets(targets, for: session.endpoint)
        }
        pushQueue.connect(session.endpoint)
        sessions.register(session.connection, as: device)
        synchronize(session.endpoint, params.start ?? .cold, at: now, into: &outbox)
    }

    private static func check(_ targets: [DeviceRegister.PushTarget]) throws(RPCError) {
        guard targets.count <= SignalLimits.pushTargets else {
            throw RPCError(
                .tooLarge, "A device has at most \(SignalLimits.pushTargets) push tokens.",
                limit: SignalLimits.pushTargets)
        }
        for target in targets {
            guard target.token.secret.utf8.count <= SignalLimits.pushTokenBytes else {
                throw RPCError(
                    .tooLarge, "A push token has at most \(SignalLimits.pushTokenBytes) bytes.",
                    limit: SignalLimits.pushTokenBytes)
            }
        }
    }

    mutating func unregister(_ session: Session) {
        sessions.unregister(session.connection)
        setPushTargets([], for: session.endpoint)
    }

    private static func check(_ device: DeviceDescription) throws(RPCError) {
        try check(device.name, "device.name")
        guard device.capabilities.count <= SignalLimits.capabilities else {
            throw RPCError(
                .tooLarge, "A device lists at most \(SignalLimits.capabilities) capabilities.",
                limit: SignalLimits.capabilities)
        }
    }

    /// Answers what is no request; a connection that sends much of it is closed.
    mutating func refuse(
        _ malformed: RPCMessage.Malformed, from connection: ConnectionID, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard var state = connections[connection] else { return }
        count(\.malformed)
        if state.malformedCount == 0 || state.malformedSince.duration(to: now) > .seconds(60) {
            state.malformedCount = 0
            state.malformedSince = now
        }
        state.malformedCount += 1
        connections[connection] = state
        outbox.append(.refuse(connection, malformed.id, malformed.error))
        if state.malformedCount > settings.malformedPerMinute {
            outbox.append(.close(connection, .policy("too many malformed messages")))
            outbox.append(.note(.connectionRefused(connection, reason: "too many malformed messages")))
        }
    }
}
