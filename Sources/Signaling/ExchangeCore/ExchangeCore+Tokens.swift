import SignalWire
import Timekeeping

/// Tokens, and the sessions that stand on them.
extension ExchangeCore {
    mutating func issue(
        _ token: SecretDigest, _ grant: Grant, refresh: SecretDigest?, mark: RefreshToken.Mark?, at now: Instant,
        into outbox: inout [Output]
    ) {
        makeRoom(for: grant, issuer: nil, at: now, into: &outbox)
        tokens.begin(
            grant, epoch: epoch(of: grant), access: token, expires: now.advanced(by: settings.tokenLifetime),
            refresh: refresh.map { ($0, mark, now.advanced(by: settings.refreshLifetime)) })
        expectSweep(at: now)
    }

    mutating func rotate(
        _ old: SecretDigest, access: SecretDigest, refresh: SecretDigest, family: SecretDigest?, at now: Instant
    ) {
        tokens.rotate(
            old, access: access, expires: now.advanced(by: settings.tokenLifetime), refresh: refresh, family: family,
            refreshExpires: now.advanced(by: settings.refreshLifetime), at: now)
        expectSweep(at: now)
    }

    mutating func admit(
        _ token: SecretDigest, of login: TokenStore.LoginID, _ grant: Grant, expires: Instant, at now: Instant,
        into outbox: inout [Output]
    ) {
        let issuer = grant.application?.text ?? ""
        if tokens.logins[login] == nil { makeRoom(for: grant, issuer: issuer, at: now, into: &outbox) }
        tokens.admit(
            token, of: login, grant, issuer: issuer, epoch: epoch(of: grant), expires: expires, at: now)
        expectSweep(at: now)
    }

    /// Ends the least recently used login of a user who has as many as it may have. A login with a session is in use.
    private mutating func makeRoom(
        for grant: Grant, issuer: String?, at now: Instant, into outbox: inout [Output]
    ) {
        guard !grant.isAnonymous else { return }
        let uses = sessions.uses(of: grant.user)
        guard let login = tokens.leastRecentlyUsed(for: grant, issuer: issuer, uses: uses) else { return }
        end(login, .replaced, at: now, into: &outbox)
    }

    mutating func sweepTokens(at now: Instant) {
        isSweepDue = false
        guard tokens.sweep(at: now, atMost: Self.timersAtOnce) else {
            // The rest has a turn of its own.
            isSweepDue = true
            return deadlines.add(.tokensAreSwept, due: now.advanced(by: .milliseconds(1)))
        }
        if tokens.count > 0 { expectSweep(at: now) }
    }

    private func epoch(of grant: Grant) -> Int64? { accounts.account(id: grant.user)?.loginsSince }

    mutating func expectSweep(at now: Instant) {
        guard !isSweepDue else { return }
        isSweepDue = true
        deadlines.add(.tokensAreSwept, due: now.advanced(by: TokenStore.sweepInterval))
    }

    // MARK: - Sessions and their tokens

    /// From now on a session stands on `token`, and is told in time when that ends (AUTH-4).
    mutating func watch(_ token: SecretDigest, on connection: ConnectionID, at now: Instant) {
        guard let login = tokens.login(of: token), let ends = tokens.expiry(of: token) else { return }
        sessions.renew(connection, login: login, ends: ends)
        let due = max(now, ends.advanced(by: .zero - settings.tokenNotice))
        // A later look that is due already finds out by itself that the token is another.
        guard sessions[connection]?.tokenCheck.map({ due < $0 }) ?? true else { return }
        expectCheck(on: connection, due: due)
    }

    private mutating func expectCheck(on connection: ConnectionID, due: Instant) {
        sessions.setTokenCheck(connection, due: due)
        deadlines.add(.tokenIsChecked(connection), due: due)
    }

    /// Tells a session that its token is about to end, or closes it when it has.
    mutating func checkToken(on connection: ConnectionID, at now: Instant, into outbox: inout [Output]) {
        guard let session = sessions[connection], let ends = session.tokenEnds, let due = session.tokenCheck,
            due <= now
        else { return }
        let notice = ends.advanced(by: .zero - settings.tokenNotice)
        if ends <= now {
            outbox.append(.close(connection, .tokenExpired))
            outbox.append(.note(.tokenExpired(session.endpoint, connection)))
            lose(connection, at: now, into: &outbox)
        } else if notice <= now {
            let remaining = now.duration(to: ends).seconds
            sendTransient(.tokenExpiring(TokenExpiring(expiresIn: remaining)), to: session, into: &outbox)
            expectCheck(on: connection, due: ends)
        } else {
            expectCheck(on: connection, due: notice)
        }
    }

    /// A session goes on with a new token; one that is not good changes nothing.
    mutating func renew(
        _ params: SessionRenew, _ session: Session, at now: Instant
    ) throws(RPCError) -> SessionRenew.Result {
        let token = SecretDigest(of: params.token.secret)
        let grant = try tokens.grant(for: token, at: now)
        guard grant.user == session.endpoint.user, grant.isAnonymous == session.isAnonymous else {
            throw RPCError(.tokenRejected, "The token is another user's than this session's.")
        }
        guard grant.room?.room == session.room?.room else {
            throw RPCError(.tokenForAnotherSession, "The token is good for another session than this one.")
        }
        guard !isOfAnotherGuest(token, grant, session) else {
            throw RPCError(.tokenRejected, "The token is another guest's than this session's.")
        }
        tokens.confirm(token, at: now)
        watch(token, on: session.connection, at: now)
        noteLogins(of: session.endpoint.principal)
        let ends = tokens.expiry(of: token) ?? now
        return SessionRenew.Result(expiresIn: now.duration(to: ends).seconds)
    }

    /// A guest may go on with a login that it has made since, but not with one that is another guest already.
    private func isOfAnotherGuest(_ token: SecretDigest, _ grant: Grant, _ session: Session) -> Bool {
        guard grant.isAnonymous, let login = tokens.login(of: token) else { return false }
        let guest = principal(of: grant, login)
        return guest != session.endpoint.principal && sessions.has(guest)
    }

    /// Keeps in mind which logins a guest's sessions stand on.
    mutating func noteLogins(of principal: Principal) {
        guard principal.isGuest else { return }
        let own = sessions.sessions(of: principal) + sessions.detached(of: principal).map(\.session)
        guests.set(principal, standsOn: Set(own.compactMap(\.login)))
    }

    // MARK: - The end of logins

    /// Ends a login with its sessions, calls included (AUTH-9).
    mutating func end(
        _ login: TokenStore.LoginID, _ cause: LoginEnd = .loggedOut, at now: Instant, into outbox: inout [Output]
    ) {
        let ended = cause == .replaced ? tokens.release(login, at: now) : tokens.end(login, at: now)
        guard let grant = ended else { return }
        endSessions(of: principal(of: grant, login), at: now, into: &outbox) { $0.login == login }
        outbox.append(.note(.loginEnded(grant.user, cause)))
    }

    /// Ends all logins of a user, and every session that was begun with one.
    mutating func endLogins(of user: UserID, at now: Instant, into outbox: inout [Output]) {
        for login in tokens.logins(of: user) { end(login, at: now, into: &outbox) }
        // A session may be there for a while after its login's last token has ended.
        for principal in sessions.principals(called: user) {
            endSessions(of: principal, at: now, into: &outbox) { $0.login != nil }
        }
    }

    /// Ends those of somebody's sessions of which something holds, lost ones too.
    private mutating func endSessions(
        of principal: Principal, at now: Instant, into outbox: inout [Output], where holds: (Session) -> Bool
    ) {
        for session in sessions.sessions(of: principal) where holds(session) {
            endSession(session, at: now, into: &outbox)
            outbox.append(.close(session.connection, .loggedOut))
        }
        for left in sessions.detached(of: principal).map(\.session) where holds(left) {
            if sessions.session(at: left.endpoint) == nil { endCalls(of: left.endpoint, at: now, into: &outbox) }
            giveUp(left.id, at: now, into: &outbox)
        }
    }

    /// Whoever has no account any more, or had its logins taken back, is logged out.
    mutating func replaceAccounts(_ accounts: [Account], at now: Instant, into outbox: inout [Output]) {
        let before = self.accounts
        self.accounts = Accounts(accounts)
        for account in before.all {
            let after = self.accounts.account(id: account.id)
            guard after == nil || after?.loginsSince != account.loginsSince else { continue }
            endLogins(of: account.id, at: now, into: &outbox)
            guard after == nil else { continue }
            endSessions(of: account.id, at: now, into: &outbox)
            acquaintances.forget(account.id)
            forgetRemoved(account.id, at: now, into: &outbox)
        }
        // A stranger's name may have become a user's.
        for account in self.accounts.all where before.account(called: account.id) == nil {
            for id in [account.id] + account.publicIDs { endLogins(of: id, at: now, into: &outbox) }
        }
    }

    /// Ends what a user without an account has left: sessions that the exchange began itself, and events, which whoever
    /// is given that name next must not find on disk either.
    private mutating func endSessions(of user: UserID, at now: Instant, into outbox: inout [Output]) {
        endSessions(of: .account(user), at: now, into: &outbox) { _ in true }
        dropLog(of: .account(user))
        outbox.append(.persist(.streamForgotten(.account(user))))
    }

    // MARK: - Too much

    /// Whether a connection may send one more message; if not, it is told so, and closed if it does not stop.
    mutating func mayAsk(
        _ id: RPCID, on connection: ConnectionID, at now: Instant, into outbox: inout [Output]
    ) -> Bool {
        guard sessions[connection]?.isInternal != true, let state = connections[connection] else { return true }
        var bucket = state.messages ?? TokenBucket(settings.messages, at: now)
        let mayAsk = bucket.take(settings.messages, at: now)
        connections[connection]?.messages = bucket
        if mayAsk {
            if state.refusedCount > 0, bucket.isFull(settings.messages, at: now) {
                connections[connection]?.refusedCount = 0
            }
            return true
        }
        connections[connection]?.refusedCount += 1
        count(\.refusals)
        let rate = Int(settings.messages.perSecond)
        let error = RPCError(
            .tooManyRequests, "A connection sends at most \(rate) messages a second; slow down.", limit: rate)
        outbox.append(.refuse(connection, id, error))
        if state.refusedCount + 1 > settings.messagesRefused {
            outbox.append(.close(connection, .policy("too many messages")))
            outbox.append(.note(.connectionRefused(connection, reason: "too many messages")))
            lose(connection, at: now, into: &outbox)
        }
        return false
    }

    /// Answers a request whose signed token was looked at, and is not good.
    mutating func refuse(
        _ error: RPCError, to id: RPCID, from connection: ConnectionID, closes: Bool, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard connections[connection] != nil else { return }
        count(\.requests)
        guard mayAsk(id, on: connection, at: now, into: &outbox) else { return }
        count(\.refusals)
        outbox.append(.refuse(connection, id, error))
        if closes { outbox.append(.close(connection, .tokenRejected)) }
    }
}
