import SignalWire
import Core

/// The sessions that have a connection, found by it or by whose they are, and those that lost it a short while ago.
struct Sessions: Sendable {
    /// A session without a connection.
    struct Detached: Sendable {
        var session: Session
        var until: Instant
        /// Its peers were notified that it was dropped.
        var isMissed: Bool
    }

    private let resumeWindow: Duration
    private var tokenNotice: Duration
    /// Sessions that one user may have at once.
    private let capacityPerUser: Int
    private var sockets: Sockets
    private var guests = Guests()
    private var byConnection: [ConnectionID: Session] = [:]
    private var connectionsByPrincipal: [Principal: [ConnectionID]] = [:]
    private var detached: [SessionID: Detached] = [:]
    /// A principal's disconnected sessions, oldest first.
    private var detachedByPrincipal: [Principal: [SessionID]] = [:]
    /// All that have a session, by their names.
    private var principals: [UserID: Set<Principal>] = [:]
    /// The users one of whose devices has come or gone since ``takeTouched()``.
    private var touched: Set<UserID> = []
    /// The connection of each session that has one.
    private var connectionBySession: [SessionID: ConnectionID] = [:]
    /// The sessions that began, changed or ended since ``recordChanges(_:_:into:)``.
    private var changed: Set<SessionID> = []

    init(_ settings: ExchangeCore.Settings) {
        resumeWindow = settings.resumeWindow
        tokenNotice = settings.tokenNotice
        capacityPerUser = settings.sessionsPerUser
        sockets = Sockets(settings)
    }

    /// Adopts the notice before a token's end and the limits of messages.
    mutating func adopt(_ settings: ExchangeCore.Settings) {
        tokenNotice = settings.tokenNotice
        sockets.adopt(settings)
    }

    /// How many sessions have a connection.
    var count: Int { byConnection.count }

    /// The sessions that have a connection, oldest connection first.
    var all: [Session] { byConnection.values.sorted { $0.connection.number < $1.connection.number } }

    /// All sessions that a client has or can resume.
    var resumable: [SessionID] { byConnection.values.filter { !$0.isInternal }.map(\.id) + detached.keys }

    subscript(connection: ConnectionID) -> Session? { byConnection[connection] }

    /// A principal's sessions that have a connection, oldest first.
    func sessions(of principal: Principal) -> [Session] {
        (connectionsByPrincipal[principal] ?? []).compactMap { byConnection[$0] }
    }

    /// The sessions of a user with an account that have a connection, oldest first.
    func sessions(of user: UserID) -> [Session] { sessions(of: .account(user)) }

    /// A principal's sessions, with a connection or without.
    func count(of principal: Principal) -> Int {
        (connectionsByPrincipal[principal]?.count ?? 0) + (detachedByPrincipal[principal]?.count ?? 0)
    }

    /// Whether the principal has a session, with a connection or without.
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

    /// Whether a device receives events now.
    func isListening(_ endpoint: Endpoint) -> Bool { session(at: endpoint)?.isRegistered == true }

    /// The connections of the principal's devices that an event's audience includes.
    func connections(of principal: Principal, in audience: Audience) -> [ConnectionID] {
        sessions(of: principal)
            .filter { audience.includes($0.endpoint.device, isRegistered: $0.isRegistered) }
            .map(\.connection)
    }

    /// Makes sure that each of the users has a device online, other than the one that asks.
    ///
    /// - Throws: `noDeviceOnline`.
    func checkOnline(_ users: [UserID], but inviter: Endpoint) throws(RPCError) {
        for user in users {
            let isOnline = sessions(of: user).contains { $0.isRegistered && $0.endpoint != inviter }
            guard isOnline else { throw RPCError(.noDeviceOnline, "None of the user's devices is online.") }
        }
    }

    /// Whether a device of the user receives invites.
    func isReachable(_ user: UserID) -> Bool { sessions(of: user).contains { $0.isRegistered } }

    /// The users whose ``isReachable(_:)`` may have changed since the last call, in the order of their ids.
    mutating func takeTouched() -> [UserID] {
        guard !touched.isEmpty else { return [] }
        defer { touched = [] }
        return touched.sorted()
    }

    /// A session that has a connection or can be resumed.
    func session(_ id: SessionID) -> Session? {
        connectionBySession[id].flatMap { byConnection[$0] } ?? detached[id]?.session
    }

    /// Until when a session can be resumed; `nil` while it has a connection.
    func end(of id: SessionID) -> Instant? { detached[id]?.until }

    /// Marks a session to be written again; a session internal to the exchange is not stored.
    private mutating func note(_ session: Session?) {
        if let session, !session.isInternal { changed.insert(session.id) }
    }

    /// Notes that sessions must be written again, since their places in rooms changed.
    mutating func note(_ ids: Set<SessionID>) { for id in ids { note(session(id)) } }

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

    private mutating func touch(_ session: Session?) {
        if let session, session.endpoint.principal.kind == .account { touched.insert(session.endpoint.user) }
    }

    /// Adds a session that has a connection.
    mutating func add(_ session: Session) {
        touch(session)
        note(session)
        connectionBySession[session.id] = session.connection
        byConnection[session.connection] = session
        connectionsByPrincipal[session.endpoint.principal, default: []].append(session.connection)
        list(session.endpoint.principal)
    }

    /// Takes out the session that a connection has.
    @discardableResult
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

    // MARK: - Logins

    /// The principal of a grant. A room's token gives no access to the user's own devices, even if its holder knows the
    /// name of one; and a guest shares nothing with another that took the same name.
    func principal(of grant: Grant, _ login: TokenStore.LoginID) -> Principal {
        if let room = grant.room { return Principal(user: grant.user, kind: .visitor(room.room)) }
        return grant.isAnonymous ? guests.guest(called: grant.user, by: login) : .account(grant.user)
    }

    /// Whether a guest's login already belongs to another guest than the one that owns a session. A guest may resume
    /// with a login that it has made since.
    func isOfAnotherGuest(_ login: TokenStore.LoginID, _ grant: Grant, than session: Session) -> Bool {
        let guest = principal(of: grant, login)
        return grant.isAnonymous && guest != session.endpoint.principal && has(guest)
    }

    /// Makes sure that a user may have a session at `endpoint` beside those that it has.
    func checkCount(with endpoint: Endpoint) throws(RPCError) {
        let others = sessions(of: endpoint.principal).filter { $0.endpoint != endpoint }
        guard others.count < capacityPerUser else {
            throw RPCError(.tooManyRequests, "This user already has \(capacityPerUser) sessions, the limit.")
        }
    }

    /// Records which logins a guest's sessions depend on.
    mutating func noteLogins(of principal: Principal) {
        guard principal.isGuest else { return }
        let own = sessions(of: principal) + detached(of: principal).map(\.session)
        guests.set(principal, standsOn: Set(own.compactMap(\.login)))
    }

    /// Binds a session to a login from now on, and schedules the notice of its token's end (AUTH-4).
    mutating func watch(
        _ connection: ConnectionID, _ login: TokenStore.LoginID, ends: Instant, at now: Instant,
        _ effects: inout Effects
    ) {
        byConnection[connection]?.login = login
        byConnection[connection]?.tokenEnds = ends
        note(byConnection[connection])
        let due = max(now, ends.advanced(by: .zero - tokenNotice))
        // A later look that is due already finds out by itself that the token is another.
        guard byConnection[connection]?.tokenCheck.map({ due < $0 }) ?? true else { return }
        expectCheck(on: connection, due: due, &effects)
    }

    private mutating func expectCheck(on connection: ConnectionID, due: Instant, _ effects: inout Effects) {
        byConnection[connection]?.tokenCheck = due
        effects.schedule(.tokenIsChecked(connection), due: due)
    }

    /// Notifies a session that its token is about to end, or closes its connection when it has.
    ///
    /// - Returns: Whether the connection is lost by that.
    mutating func checkToken(on connection: ConnectionID, at now: Instant, _ effects: inout Effects) -> Bool {
        guard let session = byConnection[connection], let ends = session.tokenEnds, let due = session.tokenCheck,
            due <= now
        else { return false }
        let notice = ends.advanced(by: .zero - tokenNotice)
        if ends <= now {
            effects.close(connection, .tokenExpired)
            effects.note(.tokenExpired(session.endpoint, connection))
            return true
        } else if notice <= now {
            let remaining = now.duration(to: ends).seconds
            let event = effects.body(of: .tokenExpiring(TokenExpiring(expiresIn: remaining)))
            effects.sendTransient(event, to: session)
            expectCheck(on: connection, due: ends, &effects)
        } else {
            expectCheck(on: connection, due: notice, &effects)
        }
        return false
    }

    // MARK: - Sockets

    /// All sockets that are open.
    var connections: some Collection<ConnectionID> { sockets.connections }

    /// Whether a socket is open.
    func isOpen(_ connection: ConnectionID) -> Bool { sockets.has(connection) }

    /// Whether a socket is open without a session.
    func awaitsLogin(on connection: ConnectionID) -> Bool {
        sockets.has(connection) && byConnection[connection] == nil
    }

    /// From now on the connection has a while to log in.
    mutating func expectLogin(on connection: ConnectionID, at now: Instant, _ effects: inout Effects) {
        sockets.expectLogin(on: connection, at: now, &effects)
    }

    /// Closes a connection that has no session if its time to log in has ended.
    func closeOverdue(_ connection: ConnectionID, at now: Instant, _ effects: inout Effects) {
        if byConnection[connection] == nil { sockets.closeOverdue(connection, at: now, &effects) }
    }

    /// The socket is gone.
    mutating func removeSocket(_ connection: ConnectionID) { sockets.remove(connection) }

    /// Whether a connection may send one more message. The exchange's own are not limited.
    mutating func admit(
        _ id: RPCID, on connection: ConnectionID, at now: Instant, _ effects: inout Effects
    ) -> Sockets.Admission {
        guard byConnection[connection]?.isInternal != true else { return .admitted }
        return sockets.admit(id, on: connection, at: now, &effects)
    }

    /// Answers what is no request; a connection that sends much of it is closed.
    mutating func refuse(
        _ malformed: RPCMessage.Malformed, from connection: ConnectionID, at now: Instant, _ effects: inout Effects
    ) {
        sockets.refuse(malformed, from: connection, at: now, &effects)
    }

    // MARK: - With a connection

    /// Gives a connection of the exchange's own a session; its device is the exchange's choice and receives no invites.
    ///
    /// - Parameter login: The one that it ends with, if it was begun with a token.
    mutating func attach(
        _ endpoint: Endpoint, on connection: ConnectionID, _ login: TokenStore.LoginID?, at now: Instant,
        _ effects: inout Effects
    ) {
        sockets.attach(connection, at: now)
        add(
            Session(
                id: effects.nextID("session"), name: effects.nextID("connection"), connection: connection,
                endpoint: endpoint, login: login, isInternal: true,
                device: DeviceDescription(id: endpoint.device, name: endpoint.device.text)))
        effects.count(\.sessions)
        effects.note(.sessionStarted(endpoint, connection, resumed: false))
    }

    /// A device receives invites from now on.
    mutating func register(_ connection: ConnectionID, as device: DeviceDescription) {
        touch(byConnection[connection])
        byConnection[connection]?.isRegistered = true
        byConnection[connection]?.device = device
        note(byConnection[connection])
    }

    /// A device receives no invites any more.
    mutating func unregister(_ connection: ConnectionID) {
        touch(byConnection[connection])
        byConnection[connection]?.isRegistered = false
        note(byConnection[connection])
    }

    // MARK: - Without a connection

    /// A principal's disconnected sessions, oldest first.
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

    /// Detaches a session from its connection, and keeps it for the resume window.
    ///
    /// - Parameter isMissed: Whether its peers are notified.
    /// - Returns: When that window ends.
    mutating func part(
        _ session: Session, isMissed: Bool, at now: Instant, _ effects: inout Effects
    ) -> Instant {
        sockets.remove(session.connection)
        remove(session.connection)
        let until = now.advanced(by: resumeWindow)
        note(session)
        detach(session, until: until, isMissed: isMissed)
        effects.schedule(.sessionIsForgotten(session.id), due: until)
        return until
    }

    /// The disconnected session that the principal must give up because it has too many.
    func surplus(of principal: Principal) -> SessionID? {
        let left = detached(of: principal)
        return left.count > capacityPerUser ? left.first?.session.id : nil
    }

    private mutating func detach(_ session: Session, until: Instant, isMissed: Bool) {
        detached[session.id] = Detached(session: session, until: until, isMissed: isMissed)
        detachedByPrincipal[session.endpoint.principal, default: []].append(session.id)
        list(session.endpoint.principal)
    }

    /// Removes a disconnected session: a device resumes it, or it ends.
    mutating func takeDetached(_ id: SessionID) -> Detached? {
        guard let found = detached.removeValue(forKey: id) else { return nil }
        note(found.session)
        let principal = found.session.endpoint.principal
        detachedByPrincipal[principal]?.removeAll { $0 == id }
        if detachedByPrincipal[principal]?.isEmpty == true { detachedByPrincipal[principal] = nil }
        list(principal)
        return found
    }

    // MARK: - To disk and back

    /// Puts out which sessions began, changed or ended, in the order of their ids, and charges whose they are.
    mutating func recordChanges(_ rooms: Rooms, _ budget: inout Budget, into outbox: inout [ExchangeCore.Output]) {
        guard !changed.isEmpty else { return }
        for id in changed.sorted() {
            let stored = stored(id, rooms)
            charge(id, stored, &budget)
            outbox.append(.persist(stored.map(Change.session) ?? .sessionForgotten(id)))
        }
        changed = []
    }

    /// Charges those whose sessions there are.
    func chargeAll(_ rooms: Rooms, _ budget: inout Budget) {
        for id in resumable { charge(id, stored(id, rooms), &budget) }
    }

    /// Restores a session from disk. A session that was connected when the exchange ended counts as disconnected from
    /// now on. The end of its window is written with the next input, so that further restarts do not extend it.
    ///
    /// - Parameter isOver: Whether its login ended while the exchange was down, which ends the session too.
    /// - Returns: The session, unless it ended.
    mutating func restore(
        _ stored: StoredSession, at now: Instant, _ effects: inout Effects, isOver: (TokenStore.LoginID) -> Bool
    ) -> Session? {
        let whole = now.advanced(by: resumeWindow)
        let until = min(stored.resumableUntil ?? whole, whole)
        let session = Session(stored)
        if let login = session.login, isOver(login) {
            changed.insert(session.id)
            return nil
        }
        // Its peers were not notified of a drop that the earlier run did not detect.
        detach(session, until: until, isMissed: stored.isMissed)
        if stored.resumableUntil != until { note(session) }
        noteLogins(of: session.endpoint.principal)
        effects.schedule(.sessionIsForgotten(session.id), due: until)
        return session
    }

    /// A session's record to store on disk; `nil` if the session cannot be resumed.
    private func stored(_ id: SessionID, _ rooms: Rooms) -> StoredSession? {
        guard let session = session(id) else { return nil }
        return StoredSession(
            id: id, principal: session.endpoint.principal, device: session.endpoint.device,
            isRegistered: session.isRegistered, connection: session.name,
            scope: session.room.map { StoredPlace(room: $0.room, role: $0.role.rawValue, data: $0.data) },
            login: session.login?.hex, places: rooms.stored(of: id), resumableUntil: end(of: id),
            isMissed: isMissing(id))
    }

    private func charge(_ id: SessionID, _ stored: StoredSession?, _ budget: inout Budget) {
        guard let stored, let device = session(id)?.device else { return budget.charge(.session(id), 0, for: nil) }
        budget.charge(.session(id), Weight.of(stored, device), for: stored.principal)
    }
}
