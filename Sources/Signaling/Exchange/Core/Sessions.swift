import SignalWire
import Timekeeping

/// One login on one connection.
struct Session: Sendable {
    let id: SessionID
    let connection: ConnectionID
    let endpoint: Endpoint
    /// Rooms only.
    let isAnonymous: Bool
    /// With a session token: the one room that it opens.
    var room: Grant.RoomGrant?
    /// The login that it stands on; `nil` for one that the exchange began itself.
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

    var participant: RoomJoin.Participant { .init(connection: connection.name, user: endpoint.user.name) }
}

extension ConnectionID {
    /// How the connection is called on the wire.
    var name: String { "c\(number)" }
}

/// The sessions that have a connection, found by it or by their user, and those that lost it a short while ago.
struct Sessions: Sendable {
    /// A session without a connection.
    struct Detached: Sendable {
        var endpoint: Endpoint
        var isRegistered: Bool
        var login: TokenStore.LoginID?
        var until: Instant
    }

    private var byConnection: [ConnectionID: Session] = [:]
    private var connectionsByUser: [UserID: [ConnectionID]] = [:]
    private var detached: [SessionID: Detached] = [:]
    /// The users one of whose devices has come or gone since ``takeTouched()``.
    private var touched: Set<UserID> = []

    /// How many sessions have a connection.
    var count: Int { byConnection.count }

    subscript(connection: ConnectionID) -> Session? { byConnection[connection] }

    /// The user's sessions, oldest first.
    func sessions(of user: UserID) -> [Session] {
        (connectionsByUser[user] ?? []).compactMap { byConnection[$0] }
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

    mutating func add(_ session: Session) {
        touched.insert(session.endpoint.user)
        byConnection[session.connection] = session
        connectionsByUser[session.endpoint.user, default: []].append(session.connection)
    }

    mutating func remove(_ connection: ConnectionID) -> Session? {
        guard let session = byConnection.removeValue(forKey: connection) else { return nil }
        let user = session.endpoint.user
        touched.insert(user)
        connectionsByUser[user]?.removeAll { $0 == connection }
        if connectionsByUser[user]?.isEmpty == true { connectionsByUser[user] = nil }
        return session
    }

    /// Notes with which token a session goes on.
    mutating func renew(_ connection: ConnectionID, login: TokenStore.LoginID, ends: Instant) {
        byConnection[connection]?.login = login
        byConnection[connection]?.tokenEnds = ends
    }

    /// Notes when a session's token is looked at next.
    mutating func setTokenCheck(_ connection: ConnectionID, due: Instant) {
        byConnection[connection]?.tokenCheck = due
    }

    /// Takes out what is left of a login's sessions that have no connection.
    mutating func forget(_ login: TokenStore.LoginID) -> [Endpoint] {
        let over = detached.filter { $0.value.login == login }
        for id in over.keys { detached[id] = nil }
        return over.values.map(\.endpoint)
    }

    mutating func register(_ connection: ConnectionID, as device: DeviceDescription) {
        if let user = byConnection[connection]?.endpoint.user { touched.insert(user) }
        byConnection[connection]?.isRegistered = true
        byConnection[connection]?.device = device
    }

    mutating func unregister(_ connection: ConnectionID) {
        if let user = byConnection[connection]?.endpoint.user { touched.insert(user) }
        byConnection[connection]?.isRegistered = false
    }

    /// Keeps what is needed to resume a session that lost its connection.
    mutating func detach(_ session: Session, until: Instant) {
        detached[session.id] = Detached(
            endpoint: session.endpoint, isRegistered: session.isRegistered, login: session.login, until: until)
    }

    /// Takes out a session that `endpoint` may go on with at `now`.
    mutating func reattach(_ id: SessionID, at endpoint: Endpoint, now: Instant) -> Detached? {
        guard let found = detached[id], found.endpoint == endpoint, now < found.until else { return nil }
        detached[id] = nil
        return found
    }

    /// Forgets a session that nobody went on with, unless it was lost once more since.
    mutating func forget(_ id: SessionID, at now: Instant) {
        if let found = detached[id], found.until <= now { detached[id] = nil }
    }
}
