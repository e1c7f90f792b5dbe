import ExchangeStore
import SignalWire
import Timekeeping

/// One login on one connection.
struct Session: Sendable {
    let id: SessionID
    /// The connection as rooms and peers know it; it stays when the session is resumed on another.
    let name: String
    var connection: ConnectionID
    let endpoint: Endpoint
    var isAnonymous: Bool
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
}

/// The sessions that have a connection, found by it or by their user, and those that lost it a short while ago.
struct Sessions: Sendable {
    /// A session without a connection.
    struct Detached: Sendable {
        var session: Session
        var until: Instant
        /// Its peers have been told that it was dropped.
        var isMissed: Bool
    }

    private var byConnection: [ConnectionID: Session] = [:]
    private var connectionsByUser: [UserID: [ConnectionID]] = [:]
    private var detached: [SessionID: Detached] = [:]
    /// A user's sessions without a connection, the one that lost it longest ago first.
    private var detachedByUser: [UserID: [SessionID]] = [:]
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

    subscript(connection: ConnectionID) -> Session? { byConnection[connection] }

    /// The user's sessions that have a connection, oldest first.
    func sessions(of user: UserID) -> [Session] {
        (connectionsByUser[user] ?? []).compactMap { byConnection[$0] }
    }

    /// How a user's logins are in use: by a session that has a connection or, failing that, by one that can be resumed.
    func uses(of user: UserID) -> [TokenStore.LoginID: TokenStore.SessionUse] {
        var uses: [TokenStore.LoginID: TokenStore.SessionUse] = [:]
        for login in detached(of: user).compactMap(\.session.login) { uses[login] = .resumable }
        for login in sessions(of: user).compactMap(\.login) { uses[login] = .connected }
        return uses
    }

    /// The session of one device, if it is connected.
    func session(at endpoint: Endpoint) -> Session? {
        sessions(of: endpoint.user).first { $0.endpoint == endpoint }
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

    mutating func add(_ session: Session) {
        touched.insert(session.endpoint.user)
        note(session)
        connectionBySession[session.id] = session.connection
        byConnection[session.connection] = session
        connectionsByUser[session.endpoint.user, default: []].append(session.connection)
    }

    mutating func remove(_ connection: ConnectionID) -> Session? {
        guard let session = byConnection.removeValue(forKey: connection) else { return nil }
        let user = session.endpoint.user
        touched.insert(user)
        note(session)
        connectionBySession[session.id] = nil
        connectionsByUser[user]?.removeAll { $0 == connection }
        if connectionsByUser[user]?.isEmpty == true { connectionsByUser[user] = nil }
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
        if let user = byConnection[connection]?.endpoint.user { touched.insert(user) }
        byConnection[connection]?.isRegistered = true
        byConnection[connection]?.device = device
        note(byConnection[connection])
    }

    mutating func unregister(_ connection: ConnectionID) {
        if let user = byConnection[connection]?.endpoint.user { touched.insert(user) }
        byConnection[connection]?.isRegistered = false
        note(byConnection[connection])
    }

    // MARK: - Without a connection

    /// The user's sessions without a connection, the one that lost it longest ago first.
    func detached(of user: UserID) -> [Detached] { (detachedByUser[user] ?? []).compactMap { detached[$0] } }

    /// Whether a session has lost its connection, and its peers know.
    func isMissing(_ id: SessionID) -> Bool { detached[id]?.isMissed == true }

    /// Whether a session has lost its connection for good at `now`.
    func isOver(_ id: SessionID, at now: Instant) -> Bool { detached[id].map { $0.until <= now } ?? false }

    /// Keeps a session that lost its connection.
    mutating func detach(_ session: Session, until: Instant, isMissed: Bool) {
        note(session)
        restore(session, until: until, isMissed: isMissed)
    }

    /// Takes in a session that is on disk, without a connection.
    mutating func restore(_ session: Session, until: Instant, isMissed: Bool) {
        detached[session.id] = Detached(session: session, until: until, isMissed: isMissed)
        detachedByUser[session.endpoint.user, default: []].append(session.id)
    }

    /// Takes out a session that has no connection: somebody goes on with it, or it is over.
    mutating func takeDetached(_ id: SessionID) -> Detached? {
        guard let found = detached.removeValue(forKey: id) else { return nil }
        note(found.session)
        let user = found.session.endpoint.user
        detachedByUser[user]?.removeAll { $0 == id }
        if detachedByUser[user]?.isEmpty == true { detachedByUser[user] = nil }
        return found
    }
}
