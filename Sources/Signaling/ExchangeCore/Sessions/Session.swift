import SignalWire
import Core

/// One socket, for as long as it lives. Numbers are not used twice.
package struct ConnectionID: Hashable, Sendable {
    package var number: UInt64

    /// Names a connection by a number that no other has.
    package init(number: UInt64) { self.number = number }

    /// How the log calls the socket.
    package var name: String { "c\(number)" }
}

/// One login on one connection.
struct Session: Sendable {
    package let id: SessionID
    /// The connection as rooms and peers know it; it stays when the session is resumed on another.
    let name: ConnectionName
    var connection: ConnectionID
    let endpoint: Endpoint
    /// The one room that the login opens, if it was by a token for a session (AUTH-5).
    var room: Grant.RoomGrant?
    /// The login that it depends on; `nil` for one that the exchange began itself without a login's token.
    var login: TokenStore.LoginID?
    /// When the token that was last shown ends.
    var tokenEnds: Instant?
    /// When that is looked at next.
    var tokenCheck: Instant?
    /// The device is internal to the exchange, and therefore never loses its connection.
    var isInternal = false
    /// The device receives invites (DEV-1).
    var isRegistered = false
    /// What the device says of itself.
    var device: DeviceDescription

    /// For rooms only, by a name alone (AUTH-3).
    var isAnonymous: Bool { endpoint.principal.isGuest }
}

extension Session {
    /// One that was kept on disk. It has no connection; number 0 is none.
    init(_ stored: StoredSession) {
        self.init(
            id: stored.id, name: stored.connection, connection: ConnectionID(number: 0),
            endpoint: Endpoint(stored.principal, stored.device),
            room: stored.scope.flatMap { Grant.RoomGrant($0) }, login: stored.login.flatMap { SecretDigest(hex: $0) },
            isRegistered: stored.isRegistered,
            device: DeviceDescription(id: stored.device, name: stored.device.text))
    }
}

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
