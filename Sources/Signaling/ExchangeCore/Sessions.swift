import SignalWire
import Timekeeping

/// One login on one connection.
struct Session: Sendable {
    package let id: SessionID
    /// The connection as rooms and peers know it; it stays when the session is resumed on another.
    let name: ConnectionName
    var connection: ConnectionID
    let endpoint: Endpoint
    /// The one room that the login opens, if it was by a token for a session (AUTH-5).
    var room: Grant.RoomGrant?
    /// The login that it stands on; `nil` for one that the exchange began itself, unless with a login's token.
    var login: TokenStore.LoginID?
    /// When the token that was last shown ends.
    var tokenEnds: Instant?
    /// When that is looked at next.
    var tokenCheck: Instant?
    /// The exchange stands for the device, which therefore never loses its connection.
    var isInternal = false
    /// The device receives invites (DEV-1).
    var isRegistered = false
    /// What the device says of itself.
    var device: DeviceDescription

    /// For rooms only, by a name alone (AUTH-3).
    var isAnonymous: Bool { endpoint.principal.isGuest }
}

/// The sessions that have a connection, found by it or by whose they are, and those that lost it a short while ago.
struct Sessions: Sendable {
    /// A session without a connection.
    struct Detached: Sendable {
        var session: Session
        var until: Instant
        /// Its peers have been told that it was dropped.
        var isMissed: Bool
    }

    private var byConnection: [ConnectionID: Session] = [:]
    private var connectionsByPrincipal: [Principal: [ConnectionID]] = [:]
    private var detached: [SessionID: Detached] = [:]
    /// Somebody's sessions without a connection, the one that lost it longest ago first.
    private var detachedByPrincipal: [Principal: [SessionID]] = [:]
    /// All that have a session, by their names.
    private var principals: [UserID: Set<Principal>] = [:]
    /// The users one of whose devices has come or gone since ``takeTouched()``.
    private var touched: Set<UserID> = []
    /// The connection of each session that has one.
    private var connectionBySession: [SessionID: ConnectionID] = [:]
    /// The sessions that began, changed or ended since ``takeChanged()``.
    private var changed: Set<SessionID> = []

    /// How many sessions have a connection.
    var count: Int { byConnection.count }

    /// The sessions that have a connection, oldest connection first.
    var all: [Session] { byConnection.values.sorted { $0.connection.number < $1.connection.number } }

    /// All sessions that a client has or can resume.
    var resumable: [SessionID] { byConnection.values.filter { !$0.isInternal }.map(\.id) + detached.keys }

    subscript(connection: ConnectionID) -> Session? { byConnection[connection] }

    /// Somebody's sessions that have a connection, oldest first.
    func sessions(of principal: Principal) -> [Session] {
        (connectionsByPrincipal[principal] ?? []).compactMap { byConnection[$0] }
    }

    /// The sessions of a user with an account that have a connection, oldest first.
    func sessions(of user: UserID) -> [Session] { sessions(of: .account(user)) }

    /// Whether somebody has a session, with a connection or without.
    func has(_ principal: Principal) -> Bool {
        connectionsByPrincipal[principal] != nil || detachedByPrincipal[principal] != nil
    }

    /// How a user's logins are in use: by a session that has a connection or, failing that, by one that can be resumed.
    func uses(of user: UserID) -> [TokenStore.LoginID: TokenStore.SessionUse] {
        var uses: [TokenStore.LoginID: TokenStore.SessionUse] = [:]
        let principals = principals(called: user)
        for login in principals.flatMap({ detached(of: $0) }).compactMap(\.session.login) { uses[login] = .resumable }
        for login in principals.flatMap({ sessions(of: $0) }).compactMap(\.login) { uses[login] = .connected }
        return uses
    }

    /// The session of one device, if it is connected.
    func session(at endpoint: Endpoint) -> Session? {
        sessions(of: endpoint.principal).first { $0.endpoint == endpoint }
    }

    /// Whether a device of the user receives invites.
    func isReachable(_ user: UserID) -> Bool { sessions(of: user).contains { $0.isRegistered } }

    /// The users for whom ``isReachable(_:)`` may have changed since last asked, in the order of their ids.
    mutating func takeTouched() -> [UserID] {
        guard !touched.isEmpty else { return [] }
        defer { touched = [] }
        return touched.sorted()
    }

    /// The sessions that began, changed or ended since last asked, in the order of their ids.
    mutating func takeChanged() -> [SessionID] {
        guard !changed.isEmpty else { return [] }
        defer { changed = [] }
        return changed.sorted()
    }

    /// A session that has a connection or can be resumed.
    func session(_ id: SessionID) -> Session? {
        connectionBySession[id].flatMap { byConnection[$0] } ?? detached[id]?.session
    }

    /// Until when a session can be resumed; `nil` while it has a connection.
    func end(of id: SessionID) -> Instant? { detached[id]?.until }

    /// Notes that a session must be written anew; one that the exchange stands for dies with the process.
    mutating func note(_ session: Session?) {
        if let session, !session.isInternal { changed.insert(session.id) }
    }

    /// All of this name who have a session, as a user with an account or otherwise.
    func principals(called user: UserID) -> Set<Principal> { principals[user] ?? [] }

    private mutating func list(_ principal: Principal) {
        if has(principal) {
            principals[principal.user, default: []].insert(principal)
        } else {
            principals[principal.user]?.remove(principal)
            if principals[principal.user]?.isEmpty == true { principals[principal.user] = nil }
        }
    }

    /// Notes that a session that is on disk is over.
    mutating func forget(_ id: SessionID) { changed.insert(id) }

    private mutating func touch(_ session: Session?) {
        if let session, session.endpoint.principal.kind == .account { touched.insert(session.endpoint.user) }
    }

    mutating func add(_ session: Session) {
        touch(session)
        note(session)
        connectionBySession[session.id] = session.connection
        byConnection[session.connection] = session
        connectionsByPrincipal[session.endpoint.principal, default: []].append(session.connection)
        list(session.endpoint.principal)
    }

    mutating func remove(_ connection: ConnectionID) -> Session? {
        guard let session = byConnection.removeValue(forKey: connection) else { return nil }
        let principal = session.endpoint.principal
        touch(session)
        note(session)
        connectionBySession[session.id] = nil
        connectionsByPrincipal[principal]?.removeAll { $0 == connection }
        if connectionsByPrincipal[principal]?.isEmpty == true { connectionsByPrincipal[principal] = nil }
        list(principal)
        return session
    }

    /// Notes with which token a session goes on.
    mutating func renew(_ connection: ConnectionID, login: TokenStore.LoginID, ends: Instant) {
        byConnection[connection]?.login = login
        byConnection[connection]?.tokenEnds = ends
        note(byConnection[connection])
    }

    /// Notes when a session's token is looked at next.
    mutating func setTokenCheck(_ connection: ConnectionID, due: Instant) {
        byConnection[connection]?.tokenCheck = due
    }

    mutating func register(_ connection: ConnectionID, as device: DeviceDescription) {
        touch(byConnection[connection])
        byConnection[connection]?.isRegistered = true
        byConnection[connection]?.device = device
        note(byConnection[connection])
    }

    mutating func unregister(_ connection: ConnectionID) {
        touch(byConnection[connection])
        byConnection[connection]?.isRegistered = false
        note(byConnection[connection])
    }

    // MARK: - Without a connection

    /// Somebody's sessions without a connection, the one that lost it longest ago first.
    func detached(of principal: Principal) -> [Detached] {
        (detachedByPrincipal[principal] ?? []).compactMap { detached[$0] }
    }

    /// Whether a session has lost its connection, and its peers know.
    func isMissing(_ id: SessionID) -> Bool { detached[id]?.isMissed == true }

    /// Whether a session has lost its connection for good at `now`.
    func isOver(_ id: SessionID, at now: Instant) -> Bool { detached[id].map { $0.until <= now } ?? false }

    /// Whether a device has lost its connection and can still resume its session at `now`.
    func canReturn(_ endpoint: Endpoint, at now: Instant) -> Bool {
        detached(of: endpoint.principal).contains { $0.session.endpoint == endpoint && now < $0.until }
    }

    /// Keeps a session that lost its connection.
    mutating func detach(_ session: Session, until: Instant, isMissed: Bool) {
        note(session)
        restore(session, until: until, isMissed: isMissed)
    }

    /// Takes in a session that is on disk, without a connection.
    mutating func restore(_ session: Session, until: Instant, isMissed: Bool) {
        detached[session.id] = Detached(session: session, until: until, isMissed: isMissed)
        detachedByPrincipal[session.endpoint.principal, default: []].append(session.id)
        list(session.endpoint.principal)
    }

    /// Takes out a session that has no connection: somebody goes on with it, or it is over.
    mutating func takeDetached(_ id: SessionID) -> Detached? {
        guard let found = detached.removeValue(forKey: id) else { return nil }
        note(found.session)
        let principal = found.session.endpoint.principal
        detachedByPrincipal[principal]?.removeAll { $0 == id }
        if detachedByPrincipal[principal]?.isEmpty == true { detachedByPrincipal[principal] = nil }
        list(principal)
        return found
    }
}
