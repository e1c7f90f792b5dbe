import SignalWire

/// Identifies a guest that logged in again to resume a session (AUTH-4): it is the guest that began the session.
///
/// Bounded by the sessions of guests: it keeps only logins that such a session depends on, and that another login
/// began.
struct Guests: Sendable {
    private var byLogin: [TokenStore.LoginID: Principal] = [:]
    private var logins: [Principal: Set<TokenStore.LoginID>] = [:]

    /// The guest that a login is.
    func guest(called name: UserID, by login: TokenStore.LoginID) -> Principal {
        byLogin[login] ?? Principal(user: name, kind: .guest(login: login.hex))
    }

    /// Sets all the logins that a guest's sessions depend on; an empty set means that the guest is gone.
    mutating func set(_ principal: Principal, standsOn standing: Set<TokenStore.LoginID>) {
        guard case .guest(let first) = principal.kind else { return }
        let others = standing.filter { $0.hex != first }
        for login in (logins[principal] ?? []).subtracting(others) { byLogin[login] = nil }
        for login in others { byLogin[login] = principal }
        logins[principal] = others.isEmpty ? nil : others
    }
}
