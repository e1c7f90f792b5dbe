@testable import ExchangeCore
import JSON
import SignalWire
import Core

/// Knows what each may see and do, from docs/protocol.md alone, and judges what the exchange says.
///
/// It sees requests as they were sent and answers as they are delivered, and nothing of the core's state.
final class Oracle {
    /// The exchange has broken a promise.
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    /// Somebody who logged in.
    enum Bearer: Hashable {
        case account(String)
        case guest(login: Int)
        case visitor(String, room: String)

        var hasAccount: Bool { if case .account = self { true } else { false } }
    }

    /// One device of somebody.
    struct Place: Hashable {
        var bearer: Bearer
        var device: String
    }

    /// A session, which stays its device's when its connection is lost.
    struct Seat {
        let id: String
        let place: Place
        let user: String
        let room: String?
        var name: String
        var connection: ConnectionID?
        var lostAt = Instant.zero
        var isRegistered = false
        var login: Int
        var tokenEnds: Instant
        var hearsPresence = false
        var rooms: Set<String> = []
        /// The newest number that it was told.
        var heard: UInt64
        /// Nothing on this connection has a number that is not above it.
        var floor: UInt64
        /// What it must be told when it resumes.
        var missing: Set<String> = []
        /// What it was told once, under which number.
        var told: [String: UInt64] = [:]
    }

    let window: Duration
    /// The devices that are registered or once were, whichever of their sessions that was in.
    var onceRegistered: Set<Place> = []
    var now = Instant.zero
    var credentials: [String: Credential] = [:]
    var logins: [Login] = []
    var accounts: Set<String> = []
    /// How often somebody else has been given a name.
    var incarnations: [String: Int] = [:]
    /// From when on a user's signed tokens are good, in seconds since 1970.
    var loginsSince: [String: Int64] = [:]
    /// Whom each name calls.
    var names: [String: String] = [:]
    var seats: [String: Seat] = [:]
    var seatByConnection: [ConnectionID: String] = [:]
    /// Sockets that the exchange has not closed.
    var open: Set<ConnectionID> = []
    /// Sockets that it has said goodbye to, and why.
    var closed: [ConnectionID: CloseReason] = [:]
    var invites: [String: Invite] = [:]
    /// Whom each user knows.
    private var acquaintances: [String: Set<String>] = [:]
    private var lastInvite = 0
    /// How many places with one user strangers share.
    let strangersShare: Int
    var keys: [String: String] = [:]
    var calls: [String: [CallModel]] = [:]
    var groups: [String: GroupModel] = [:]
    var rooms: [String: Set<String>] = [:]
    /// Markers that come with somebody's place in a room.
    var placeMarkers: [String: [String]] = [:]
    var allowed: [String: (to: Set<Bearer>, since: Instant)] = [:]
    private var lastMarker = 0
    /// What this step must still bring.
    var due: Set<Duty> = []
    /// Sessions that this step has ended, which may hear what comes of that.
    var endedNow: [ConnectionID: Bearer] = [:]
    /// Sessions and invites that the operator ends in this step.
    var endedByOperator: Set<String> = []
    /// As whom the exchange has taken in who began a session last.
    var startedAs: (on: ConnectionID, Bearer)?
    /// Connections that this step must close.
    var mustClose: Set<ConnectionID> = []
    /// Bytes of the events that each stream took in lately, and when events were last told without being kept.
    var load: [Bearer: [(at: Instant, bytes: Int)]] = [:]
    var unkeptAt: Instant?
    var unkept = 0
    private(set) var counts: [String: Int] = [:]
    /// Ids that attackers may have got hold of, the newest last.
    private(set) var known: [Kind: [String]] = [:]

    enum Kind: Hashable { case session, connection, invite, group }

    struct Duty: Hashable {
        var seat: String
        var key: String
    }

    /// Markers in push tokens, which stay with the exchange, and who may see them. They are kept apart, since they become
    /// many and ``prune()`` looks at all others.
    private var lasting: [String: Set<Bearer>] = [:]

    init(window: Duration, strangersShare: Int) {
        self.window = window
        self.strangersShare = strangersShare
    }

    /// A number for an invite.
    func nextInvite() -> Int {
        lastInvite += 1
        return lastInvite
    }

    func knows(_ owner: String, _ user: String) -> Bool {
        owner == user || acquaintances[owner]?.contains(user) == true
    }

    /// A user has called another, or accepted its call.
    func meet(_ owner: String, _ user: String) { acquaintances[owner, default: []].insert(user) }

    /// Whoever gets a removed user's name is somebody else.
    func forgetAcquaintances(of user: String) {
        acquaintances[user] = nil
        for owner in acquaintances.keys { acquaintances[owner]?.remove(user) }
    }

    func require(_ holds: Bool, _ text: @autoclosure () -> String) throws(Violation) {
        guard !holds else { return }
        throw Violation(description: text())
    }

    func count(_ what: String) { counts[what, default: 0] += 1 }

    func remember(_ kind: Kind, _ id: String) {
        known[kind, default: []].append(id)
        if known[kind, default: []].count > 48 { known[kind]?.removeFirst(16) }
    }

    /// Who has a user's account now.
    func account(_ user: String) -> Bearer {
        incarnations[user].map { .account("\(user) the \($0)") } ?? .account(user)
    }

    func accounts(_ users: some Sequence<String>) -> [Bearer] { users.map { account($0) } }

    // MARK: - Secrets

    /// A marker that nobody may see but who writes it, until the exchange says that it has passed it on.
    ///
    /// - Parameter lasts: It is never forgotten.
    func marker(by author: Bearer?, lasts: Bool = false) -> String {
        lastMarker += 1
        let text = "~m\(lastMarker)~"
        let readers: Set<Bearer> = author.map { [$0] } ?? []
        if lasts { lasting[text] = readers } else { allowed[text] = (readers, now) }
        return text
    }

    func allow(_ secrets: some Sequence<String>, _ bearers: some Sequence<Bearer>) {
        for secret in secrets {
            if lasting[secret]?.formUnion(bearers) != nil { continue }
            allowed[secret, default: ([], now)].to.formUnion(bearers)
            allowed[secret]?.since = now
        }
    }

    /// Judges one text for one reader.
    func judge(
        _ secrets: Set<String>, to bearer: Bearer?, but echoed: Set<String> = [], _ what: @autoclosure () -> String
    ) throws(Violation) {
        for secret in secrets where !echoed.contains(secret) {
            guard let readers = allowed[secret]?.to ?? lasting[secret] else {
                try require(!secret.hasPrefix("~"), "\(secret) is told long after it was sent: \(what())")
                continue
            }
            let isAllowed = bearer.map(readers.contains) ?? false
            try require(isAllowed, "\(bearer.map { "\($0)" } ?? "nobody") is told \(secret) of \(readers): \(what())")
        }
    }

    // MARK: - Seats

    func seat(on connection: ConnectionID) -> Seat? { seatByConnection[connection].flatMap { seats[$0] } }

    /// A device's session, with a connection or without.
    func seat(at place: Place) -> Seat? {
        let all = seats.values.filter { $0.place == place && isAlive($0) }
        return all.first { $0.connection != nil } ?? all.first
    }

    /// Whether a session has a connection or can be resumed.
    func isAlive(_ seat: Seat?) -> Bool {
        guard let seat else { return false }
        return isAlive(seat)
    }

    func isAlive(_ seat: Seat) -> Bool {
        seat.connection != nil || now < seat.lostAt.advanced(by: window)
    }

    /// A user's sessions that receive invites, but for one device.
    func registered(_ user: String, except device: String? = nil) -> [Seat] {
        seats.values.filter {
            $0.place.bearer == account(user) && $0.isRegistered && $0.place.device != device && isAlive($0)
        }
    }

    func lose(_ connection: ConnectionID) {
        guard let id = seatByConnection.removeValue(forKey: connection) else { return }
        allowPeers(seats[id])
        seats[id]?.connection = nil
        seats[id]?.lostAt = now
        seats[id]?.hearsPresence = false
        for duty in due where duty.seat == id { seats[id]?.missing.insert(duty.key) }
        due = due.filter { $0.seat != id }
    }

    /// A session is over.
    func end(_ id: String, tells: Bool = true) {
        guard let seat = seats.removeValue(forKey: id) else { return }
        if let connection = seat.connection {
            seatByConnection[connection] = nil
            endedNow[connection] = seat.place.bearer
        }
        due = due.filter { $0.seat != id }
        for room in seat.rooms {
            rooms[room]?.remove(id)
            for other in rooms[room] ?? [] where tells {
                expect("connectionDestroyed \(room) \(seat.name)", of: seats[other])
            }
        }
        placeMarkers[id] = nil
    }

    /// A device must be told something: now or, if its connection is lost, when it resumes.
    func expect(_ key: String, of seat: Seat?) {
        guard let seat, isAlive(seat) else { return }
        if let connection = seat.connection, closed[connection] == nil {
            due.insert(Duty(seat: seat.id, key: key))
        } else {
            seats[seat.id]?.missing.insert(key)
        }
    }

    func disconnect(_ connection: ConnectionID) {
        lose(connection)
        open.remove(connection)
        closed[connection] = nil
    }

    /// The process is gone, and with it all connections.
    func restart() {
        for id in seats.keys {
            guard let connection = seats[id]?.connection else { continue }
            lose(connection)
            seats[id]?.lostAt = now
        }
        open = []
        closed = [:]
        due = []
        mustClose = []
    }

    /// Forgets what nobody can be told of any more.
    func prune() {
        for seat in seats.values where !isAlive(seat) { end(seat.id, tells: false) }
        let old = now.advanced(by: .seconds(-600))
        invites = invites.filter { id, invite in
            calls[id]?.isEmpty == false || invite.overAt.map { $0 > old } ?? true
        }
        keys = keys.filter { invites[$0.value] != nil }
        calls = calls.filter { invites[$0.key] != nil || !$0.value.isEmpty }
        var needed = Set(invites.values.flatMap(\.secrets))
        needed.formUnion(groups.values.flatMap(\.secrets))
        needed.formUnion(placeMarkers.values.joined())
        needed.formUnion(seats.values.flatMap { [$0.id, $0.name] })
        allowed = allowed.filter { $0.value.since > old || needed.contains($0.key) }
        load = load.mapValues { $0.filter { now.advanced(by: .seconds(-70)) < $0.at } }.filter { !$0.value.isEmpty }
        credentials = credentials.filter { $0.value.signed != nil || $0.value.expires > old }
    }
}
