import SignalWire
import Timekeeping

/// Which request is whose, and what it leads to.
extension ExchangeCore {
    mutating func perform(
        _ request: ClientRequest, from connection: ConnectionID, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> ClientResponse {
        switch request {
        case .ping: return .empty
        case .sessionStart(let params):
            return .session(try startSession(params, on: connection, at: now, into: &outbox))
        case .sessionRenew(let params):
            return .renewal(try renew(params, try session(on: connection), at: now))
        case .sessionEnd:
            endSession(try session(on: connection), at: now, into: &outbox)
        case .deviceRegister(let params):
            try register(params, try member(on: connection), at: now, into: &outbox)
        case .deviceUnregister:
            unregister(try member(on: connection))
        case .presenceSubscribe:
            return .presence(try subscribeToPresence(try member(on: connection)))
        case .presenceUnsubscribe:
            presence.unsubscribe(try member(on: connection).connection)
        case .inviteSend, .inviteAccept, .inviteReject, .inviteCancel, .inviteModify, .inviteList, .callSignal,
            .callEnd:
            return try perform(aboutInvite: request, from: try member(on: connection), at: now, into: &outbox)
        case .groupCreate, .groupJoin, .groupLeave, .groupDismiss, .groupMembers, .groupList:
            return try perform(aboutGroup: request, from: try member(on: connection), at: now, into: &outbox)
        case .roomJoin(let params):
            return .room(try joinRoom(params, try session(on: connection), at: now, into: &outbox))
        case .roomLeave(let params):
            try leaveRoom(params.room, try session(on: connection), at: now, into: &outbox)
        case .roomSignal(let params):
            try signalRoom(params, try session(on: connection), at: now, into: &outbox)
        }
        return .empty
    }

    private mutating func perform(
        aboutInvite request: ClientRequest, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> ClientResponse {
        switch request {
        case .inviteSend(let params):
            return .invite(try sendInvite(params, from: session, at: now, into: &outbox))
        case .inviteList(let params): return .invites(listInvites(params, of: session, at: now))
        case .inviteAccept(let params):
            try answerInvite(params.invite, .accepted, params.data, from: session, at: now, into: &outbox)
        case .inviteReject(let params):
            try answerInvite(params.invite, .rejected, params.data, from: session, at: now, into: &outbox)
        case .inviteCancel(let params): try cancelInvite(params, from: session, at: now, into: &outbox)
        case .inviteModify(let params): try modifyInvite(params, from: session, at: now, into: &outbox)
        case .callSignal(let params): try passSignal(params, from: session, at: now, into: &outbox)
        case .callEnd(let params): try endCall(params, from: session, at: now, into: &outbox)
        case .ping, .sessionStart, .sessionRenew, .sessionEnd, .deviceRegister, .deviceUnregister, .presenceSubscribe,
            .presenceUnsubscribe, .groupCreate, .groupJoin, .groupLeave, .groupDismiss, .groupMembers, .groupList,
            .roomJoin, .roomLeave, .roomSignal:
            break
        }
        return .empty
    }

    private mutating func perform(
        aboutGroup request: ClientRequest, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) -> ClientResponse {
        switch request {
        case .groupCreate(let params): return .group(try createGroup(params, session, at: now, into: &outbox))
        case .groupMembers(let params): return .members(try membersOfGroup(params.group, session))
        case .groupList(let params): return .groups(listGroups(params, of: session))
        case .groupJoin(let params): try joinGroup(params.group, session, at: now, into: &outbox)
        case .groupLeave(let params): try leaveGroup(params.group, session, at: now, into: &outbox)
        case .groupDismiss(let params): try dismissGroup(params.group, session, at: now, into: &outbox)
        case .ping, .sessionStart, .sessionRenew, .sessionEnd, .deviceRegister, .deviceUnregister, .presenceSubscribe,
            .presenceUnsubscribe, .inviteSend, .inviteAccept, .inviteReject, .inviteCancel, .inviteModify, .inviteList,
            .callSignal, .callEnd, .roomJoin, .roomLeave, .roomSignal:
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
            throw RPCError(.notAllowed, "An anonymous login may join rooms by name, and nothing else.")
        }
        guard session.room == nil else {
            throw RPCError(.notAllowed, "A login with a token for a session may join that session, and nothing else.")
        }
        return session
    }

    /// Does what is due; much of it has long been settled otherwise.
    mutating func meet(_ deadline: Deadline, at now: Instant, into outbox: inout [Output]) {
        actsFor = nil
        switch deadline {
        case .inviteTimesOut(let id): timeOutInvite(id, at: now, into: &outbox)
        case .inviteIsForgotten(let id): forgetInvite(id)
        case .accountIsMissed(let user): forgetRemoved(user, at: now, into: &outbox)
        case .sessionIsForgotten(let id):
            if sessions.isOver(id, at: now) { giveUp(id, at: now, into: &outbox) }
        case .callMayBeOrphaned(let id): dropOrphan(id, at: now, into: &outbox)
        case .tokensAreSwept: sweepTokens(at: now)
        case .tokenIsChecked(let connection): checkToken(on: connection, at: now, into: &outbox)
        case .pruningIsDue: prune(at: now, into: &outbox)
        case .eventsExpire(let principal): expireEvents(of: principal, at: now, into: &outbox)
        case .eventsArePruned: pruneEvents(at: now, into: &outbox)
        case .loginIsDue(let connection):
            guard let state = connections[connection], state.loginDue <= now, sessions[connection] == nil else {
                return
            }
            outbox.append(.close(connection, .policy("no session was started in time")))
            outbox.append(.note(.connectionRefused(connection, reason: "no session was started in time")))
        }
    }
}

extension RPCError {
    /// The token is no good, so that the same start fails again.
    var isAboutToken: Bool {
        switch known {
        case .tokenExpired, .tokenRejected, .tokenWrongSignature, .tokenForAnotherSession, .tokenRevoked: true
        default: false
        }
    }
}
