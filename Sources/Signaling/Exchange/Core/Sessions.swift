import ExchangeStore
import SignalWire
import Timekeeping

/// One login on one connection.
struct Session: Sendable {
    let id: SessionID
    let connection: ConnectionID
    let endpoint: Endpoint
    let isAnonymous: Bool
    /// The exchange stands for the device, which therefore never loses its connection.
    var isInternal = false
    /// The device receives invites (DEV-1).
    var isRegistered = false
    /// What the device says of itself.
    var device: DeviceDescription

    var participant: RoomJoin.Participant { .init(connection: connection.name, user: endpoint.user) }
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
        var isAnonymous: Bool
        var isRegistered: Bool
        var until: Instant
    }

    private var byConnection: [ConnectionID: Session] = [:]
    private var connectionsByUser: [UserID: [ConnectionID]] = [:]
    private var detached: [SessionID: Detached] = [:]
    /// The users one of whose devices has come or gone since ``takeTouched()``.
    private var touched: Set<UserID> = []
    /// The connection of each session that has one.
    private var connectionBySession: [SessionID: ConnectionID] = [:]
    /// The sessions that began, changed or ended since ``takeChanged()``.
    private var changed: Set<SessionID> = []

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

    /// The sessions that began, changed or ended since last asked, in the order of their ids.
    mutating func takeChanged() -> [SessionID] {
        guard !changed.isEmpty else { return [] }
        defer { changed = [] }
        return changed.sorted()
    }

    /// A session as it is kept on disk; `nil` if there is nothing of it that could be resumed.
    func stored(_ id: SessionID) -> StoredSession? {
        if let session = connectionBySession[id].flatMap({ byConnection[$0] }) {
            return StoredSession(
                id: id, user: session.endpoint.user, device: session.endpoint.device,
                isAnonymous: session.isAnonymous, isRegistered: session.isRegistered)
        }
        return detached[id].map {
            StoredSession(
                id: id, user: $0.endpoint.user, device: $0.endpoint.device, isAnonymous: $0.isAnonymous,
                isRegistered: $0.isRegistered, resumableUntil: $0.until)
        }
    }

    /// Takes in a session that is on disk, without a connection.
    mutating func restore(_ session: StoredSession, until: Instant) {
        detached[session.id] = Detached(
            endpoint: Endpoint(user: session.user, device: session.device), isAnonymous: session.isAnonymous,
            isRegistered: session.isRegistered, until: until)
    }

    /// Notes that a session must be written anew; one that the exchange stands for dies with the process.
    private mutating func note(_ session: Session?) {
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

    /// Keeps what is needed to resume a session that lost its connection.
    mutating func detach(_ session: Session, until: Instant) {
        detached[session.id] = Detached(
            endpoint: session.endpoint, isAnonymous: session.isAnonymous, isRegistered: session.isRegistered,
            until: until)
        note(session)
    }

    /// Takes out a session that `endpoint` may go on with at `now`.
    mutating func reattach(_ id: SessionID, at endpoint: Endpoint, now: Instant) -> Detached? {
        guard let found = detached[id], found.endpoint == endpoint, now < found.until else { return nil }
        detached[id] = nil
        return found
    }

    /// Forgets a session that nobody went on with, unless it was lost once more since.
    mutating func forget(_ id: SessionID, at now: Instant) {
        guard let found = detached[id], found.until <= now else { return }
        detached[id] = nil
        changed.insert(id)
    }
}
