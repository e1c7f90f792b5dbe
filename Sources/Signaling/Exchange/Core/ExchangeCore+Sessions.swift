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
        let token = SecretDigest(of: params.token.secret)
        let grant = try tokens.grant(for: token, at: now)
        try Self.check(grant, params)
        try Self.check(params.device)
        tokens.confirm(token, at: now)
        let endpoint = Endpoint(user: grant.principal, device: params.device.id)
        let resumed = takeOver(endpoint, params.resume, at: now, into: &outbox)
        guard sessions.sessions(of: endpoint.user).count < settings.sessionsPerUser else {
            throw RPCError(.tooManyRequests, "This user has \(settings.sessionsPerUser) sessions already.")
        }

        let id = resumed?.session ?? ids.next("session")
        sessions.add(
            Session(
                id: id, connection: connection, endpoint: endpoint,
                isAnonymous: grant.isAnonymous || grant.room != nil, room: grant.room,
                isRegistered: resumed?.isRegistered ?? false, device: params.device))
        watch(token, on: connection, at: now)
        count(\.sessions)
        outbox.append(.note(.sessionStarted(endpoint, connection, resumed: resumed != nil)))
        for event in resumed?.missed ?? [] { outbox.append(.event([connection], event)) }

        let publicIDs = grant.isAnonymous || grant.room != nil ? [] : accounts.account(id: grant.user)?.publicIDs ?? []
        return SessionStart.Result(
            session: id, connection: connection.name, user: grant.user, publicIDs: publicIDs,
            resumed: resumed != nil, sequence: logs[endpoint.user]?.sequence ?? 0,
            keepaliveSeconds: max(1, Int(settings.keepalive.seconds)),
            isAnonymous: grant.isAnonymous || grant.room != nil)
    }

    /// Whose token it is must be what the client takes it for (AUTH-4, AUTH-8).
    private static func check(_ grant: Grant, _ params: SessionStart) throws(RPCError) {
        if let user = params.user, user != grant.user {
            throw RPCError(.tokenRejected, "The token is not one of the user that the client gave.")
        }
        if let application = params.application, application != grant.application {
            throw RPCError(.tokenRejected, "The token is not one of the application that the client gave.")
        }
    }

    /// Gives a connection of the exchange's own a session; its device is the exchange's choice and receives no invites.
    mutating func attach(
        _ endpoint: Endpoint, on connection: ConnectionID, at now: Instant, into outbox: inout [Output]
    ) {
        connections[connection] = Connection(loginDue: now)
        sessions.add(
            Session(
                id: ids.next("session"), connection: connection, endpoint: endpoint, isAnonymous: false,
                isInternal: true, device: DeviceDescription(id: endpoint.device, name: endpoint.device)))
        count(\.sessions)
        outbox.append(.note(.sessionStarted(endpoint, connection, resumed: false)))
    }

    /// What a device goes on with.
    private struct Resumed {
        var session: SessionID
        var isRegistered: Bool
        var missed: [NumberedEvent]
    }

    /// Ends what is left of the device's earlier connection, and finds what it can go on with (CONN-5).
    private mutating func takeOver(
        _ endpoint: Endpoint, _ resume: SessionStart.Resume?, at now: Instant, into outbox: inout [Output]
    ) -> Resumed? {
        if let earlier = sessions.session(at: endpoint) {
            // The device is here again, so that its earlier connection is dead, whether the exchange noticed or not.
            outbox.append(.close(earlier.connection, .policy("replaced by a newer connection of this device")))
            lose(earlier.connection, at: now, into: &outbox)
        }
        guard let resume, let kept = sessions.reattach(resume.session, at: endpoint, now: now),
            let missed = (logs[endpoint.user] ?? EventLog()).missed(
                after: resume.after, by: endpoint.device, isRegistered: kept.isRegistered)
        else { return nil }
        return Resumed(session: resume.session, isRegistered: kept.isRegistered, missed: missed)
    }

    /// A clean goodbye: the device's calls end with it (CONN-9).
    mutating func endSession(_ session: Session, at now: Instant, into outbox: inout [Output]) {
        endCalls(of: session.endpoint, at: now, into: &outbox)
        leaveRooms(session, reason: "disconnected", at: now, into: &outbox)
        presence.unsubscribe(session.connection)
        _ = sessions.remove(session.connection)
        forgetStranger(session)
        outbox.append(.note(.sessionEnded(session.endpoint, session.connection)))
        expectLogin(on: session.connection, at: now)
    }

    mutating func endCalls(of endpoint: Endpoint, at now: Instant, into outbox: inout [Output]) {
        for call in calls.calls(of: endpoint) {
            let duration = Int64(call.acceptedAt.duration(to: now).milliseconds)
            end(call, by: endpoint, reason: "disconnected", duration: duration, at: now, into: &outbox)
        }
    }

    /// The socket is gone. Calls and invites stay: the device may come back (CALL-6, INV-13).
    mutating func lose(_ connection: ConnectionID, at now: Instant, into outbox: inout [Output]) {
        connections[connection] = nil
        guard let session = sessions[connection] else { return }
        leaveRooms(session, reason: "connectionLost", at: now, into: &outbox)
        presence.unsubscribe(session.connection)
        _ = sessions.remove(connection)
        forgetStranger(session)

        let until = now.advanced(by: settings.resumeWindow)
        sessions.detach(session, until: until)
        deadlines.add(.sessionIsForgotten(session.id), due: until)
        for call in calls.calls(of: session.endpoint) { deadlines.add(.callMayBeOrphaned(call.invite), due: until) }
        outbox.append(.note(.sessionLost(session.endpoint, connection)))
    }

    /// An anonymous user is nobody once its last session is gone, and leaves no event log behind.
    private mutating func forgetStranger(_ session: Session) {
        let user = session.endpoint.user
        if session.isAnonymous, sessions.sessions(of: user).isEmpty { logs[user] = nil }
    }

    mutating func register(_ device: DeviceDescription, _ session: Session) throws(RPCError) {
        try Self.check(device)
        guard device.id == session.endpoint.device else {
            throw RPCError(.invalidParams, "device.id must be the one that session.start gave.")
        }
        sessions.register(session.connection, as: device)
    }

    private static func check(_ device: DeviceDescription) throws(RPCError) {
        let texts = [device.id, device.name] + device.capabilities
        guard texts.allSatisfy({ $0.utf8.count <= SignalLimits.nameBytes }) else {
            throw RPCError(
                .tooLarge, "A device's id, name and capabilities have at most \(SignalLimits.nameBytes) bytes each.",
                limit: SignalLimits.nameBytes)
        }
        guard device.capabilities.count <= SignalLimits.capabilities else {
            throw RPCError(
                .tooLarge, "A device lists at most \(SignalLimits.capabilities) capabilities.",
                limit: SignalLimits.capabilities)
        }
        guard !device.id.isEmpty else { throw RPCError(.invalidParams, "device.id must not be empty.") }
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
