import SignalWire

/// Who is there.
extension ExchangeCore {
    /// From now on the connection hears who comes and goes.
    mutating func subscribeToPresence(_ session: Session) throws(RPCError) -> PresenceSubscribe.Result {
        guard settings.tellsPresence else {
            throw RPCError(.notAllowed, "This exchange tells nobody who is there.")
        }
        presence.subscribe(session.connection)
        let others = accounts.all.filter { $0.id != session.endpoint.user }.map(entry)
        let listed = others.filter(\.reachable) + others.filter { !$0.reachable }
        let page = Page(listed.prefix(SignalLimits.presenceUsers).lazy.map { ($0.user, $0) })
        return PresenceSubscribe.Result(users: page.entries)
    }

    /// Tells subscribers of users that have come or gone; after an input that leaves things as they were, nothing.
    mutating func announcePresence(into outbox: inout [Output]) {
        let touched = sessions.takeTouched()
        guard settings.tellsPresence else { return }
        for user in touched {
            guard presence.note(user, isReachable: sessions.isReachable(user)), let account = accounts.account(id: user)
            else { continue }
            let event = body(of: .presenceChanged(entry(account)))
            for session in presence.audience.compactMap({ sessions[$0] }) where session.endpoint.user != user {
                sendTransient(event, to: session, into: &outbox)
            }
        }
    }

    private func entry(_ account: Account) -> Presence {
        Presence(user: account.id, publicIDs: account.publicIDs, reachable: sessions.isReachable(account.id))
    }
}
