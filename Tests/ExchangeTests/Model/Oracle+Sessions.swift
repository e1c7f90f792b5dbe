@testable import ExchangeCore
import JSON
import SignalWire
import Core

extension Oracle {
    /// Something to log in with.
    struct Credential {
        let text: String
        let login: Int
        var isRefresh = false
        var expires: Instant
        /// Counts the exchanges of refresh tokens before it.
        var generation = 0
        var signed: SignedToken?
        /// It never was good.
        var isBad = false
    }

    /// What tokens that belong together are good for.
    struct Login {
        let user: String
        var isGuest = false
        var room: String?
        /// Of a guest: what its first token is called.
        var digest: String?
        var hasEnded = false
        /// The exchange has seen one of its tokens.
        var isKnown = true
        /// The newest generation of which a token was shown.
        var reached = 0
        /// The generations that were given, and from when on their refresh tokens are copies: others have taken their
        /// place.
        var generations: [Int: Instant?] = [0: nil]
        /// A session was refused that began with a good token: that was shown all the same, unless it was refused unseen.
        var isShownPerhaps = false

        /// A token was shown, so that those of all other generations are not needed any more: the one before may come up
        /// for a minute yet, and of others nobody has had the answer.
        mutating func use(_ generation: Int, at now: Instant) {
            guard generations[generation] == .some(nil), generation != reached else { return }
            for (other, copiedFrom) in generations where other != generation && copiedFrom == nil {
                generations[other] = now.advanced(by: .seconds(other == reached ? 60 : 0))
            }
            reached = generation
        }
    }

    // MARK: - Tokens

    /// What a token is good for; `nil` if for nothing.
    func grant(of text: String?) -> (login: Int, Login)? {
        guard let credential = text.flatMap({ credentials[$0] }), !credential.isRefresh, !credential.isBad,
            now < credential.expires.advanced(by: .milliseconds(1)), !logins[credential.login].hasEnded
        else { return nil }
        let login = logins[credential.login]
        let isKnown = login.isGuest || login.room != nil || accounts.contains(login.user)
        let isNew = (credential.signed?.issued ?? .infinity) >= Double(loginsSince[login.user] ?? 0)
        return isKnown && isNew ? (credential.login, login) : nil
    }

    private func bearer(_ number: Int, _ login: Login, on connection: ConnectionID) -> Bearer {
        if let room = login.room { return .visitor(login.user, room: room) }
        guard login.isGuest else { return account(login.user) }
        // Who goes on with a guest's session by another login is that guest.
        let all = seats.values.filter { $0.login == number }
        if let seat = all.first(where: { isAlive($0) }) { return seat.place.bearer }
        // The end of a session may come later than it is due, as the timer's turn does.
        let late = startedAs.flatMap { on, bearer in on == connection ? bearer : nil }
        return all.first { $0.place.bearer == late }?.place.bearer ?? .guest(login: number)
    }

    /// Somebody has shown a token, so that those before it are not needed any more.
    private func use(_ text: String) {
        guard let credential = credentials[text] else { return }
        logins[credential.login].isKnown = true
        logins[credential.login].use(credential.generation, at: now)
    }

    /// A refresh token was exchanged for others; `nil` if it was refused.
    ///
    /// - Returns: Whether its login must have ended with that, since somebody has a copy.
    func refreshed(_ old: String, for pair: (access: Credential, refresh: Credential)?) throws(Violation) -> Bool {
        guard let credential = credentials[old] else { return false }
        let login = logins[credential.login]
        let copiedFrom = login.generations[credential.generation] ?? nil
        let isCopy = credential.isRefresh && copiedFrom.map { $0.advanced(by: .milliseconds(2)) <= now } ?? false
        guard let pair else { return isCopy && !login.hasEnded && now < credential.expires }
        try require(credential.isRefresh && now < credential.expires, "\(old) is exchanged, and is not good for that")
        try require(!login.hasEnded && !isCopy, "\(old) is exchanged once more, and its login goes on")
        use(old)
        logins[credential.login].generations[pair.refresh.generation] = .some(nil)
        for new in [pair.access, pair.refresh] { credentials[new.text] = new }
        return false
    }

    /// A login is over: connected sessions that stand on it must be closed, and nobody resumes the others.
    func endLogin(_ number: Int) {
        guard !logins[number].hasEnded else { return }
        logins[number].hasEnded = true
        for seat in seats.values where seat.login == number { drop(seat) }
    }

    /// All logins by one name are over.
    func endLogins(of user: String) {
        for number in logins.indices where logins[number].user == user && logins[number].isKnown { endLogin(number) }
    }

    /// A user has no account any more; whoever gets the name is somebody else.
    func removeAccount(_ user: String) {
        endLogins(of: user)
        for seat in seats.values where seat.place.bearer == account(user) { drop(seat) }
        accounts.remove(user)
        forgetAcquaintances(of: user)
        names = names.filter { $0.value != user }
        incarnations[user, default: 0] += 1
        for id in invites.keys where invites[id]?.states[user] == .pending {
            invites[id]?.states[user] = .released
            if invites[id]?.isOver == true { invites[id]?.overAt = now }
        }
        keys = keys.filter { !$0.key.hasPrefix("\(user) ") }
        for (id, group) in groups {
            allow(group.secrets, [])
            if group.owner == user { dissolve(id) } else { groups[id]?.members.removeAll { $0 == user } }
        }
    }

    func drop(_ seat: Seat) {
        guard let connection = seat.connection else { return end(seat.id, tells: false) }
        if closed[connection] == nil { mustClose.insert(connection) } else { end(seat.id, tells: false) }
    }

    func endsByLogout(_ id: String) throws(Violation) {
        guard let seat = seats[id] else { return }
        let isOver =
            logins[seat.login].hasEnded || endedByOperator.contains(id)
            || (seat.place.bearer.hasAccount && seat.place.bearer != account(seat.user))
        try require(isOver, "\(seat.place) is logged out for no reason")
        calls = calls.mapValues { $0.filter { $0.peer(of: seat.place) == nil } }
        end(id, tells: false)
    }

    // MARK: - Requests

    func applyStart(_ frame: Frame, _ result: HeardResult.Body) throws(Violation) {
        let text = frame.text("token")
        guard let text, let (number, login) = grant(of: text) else {
            throw Violation(description: "a session begins with a token that is not good: \(frame.summary)")
        }
        try require(seat(on: frame.connection) == nil, "a second session begins on a connection")
        try require(result.user == login.user, "\(login.user)'s token gives a session to \(result.user ?? "")")
        let place = Place(
            bearer: bearer(number, login, on: frame.connection), device: frame.params["device"]?["id"]?.string ?? "")
        use(text)
        guard let id = result.session, let name = result.connection else { return }
        let earlier = seats.values.filter { $0.place == place && isAlive($0) }
        for seat in earlier {
            guard let connection = seat.connection else { continue }
            lose(connection)
            if closed[connection] == nil { mustClose.insert(connection) }
        }
        let expires = credentials[text]?.expires ?? now
        if result.resumed == true {
            try resume(id, name, place, login, frame)
        } else {
            try require(seats[id] == nil, "a new session has the id of another")
            try requireFresh(frame, place, login)
            for seat in earlier { end(seat.id) }
            seats[id] = Seat(
                id: id, place: place, user: login.user, room: login.room, name: name, login: number, tokenEnds: expires,
                heard: result.sequence ?? 0, floor: result.sequence ?? 0)
            allow([id, name], [place.bearer])
            remember(.session, id)
            remember(.connection, name)
        }
        seats[id]?.connection = frame.connection
        seats[id]?.login = number
        seats[id]?.tokenEnds = expires
        seatByConnection[frame.connection] = id
        allowPeers(seats[id])
    }

    private func resume(
        _ id: String, _ name: String, _ place: Place, _ login: Login, _ frame: Frame
    ) throws(Violation) {
        guard let seat = seats[id], frame.params["resume"]?["session"]?.string == id else {
            throw Violation(description: "a session is resumed that is over, or another than was asked for")
        }
        try require(seat.place == place, "\(place) resumes the session of \(seat.place)")
        try require(isAlive(seat), "\(place) resumes a session that was lost at \(seat.lostAt)")
        try require(seat.room == login.room && seat.name == name, "\(place) resumes with another room or name")
        let after = frame.params["resume"]?["after"]?.integer ?? 0
        seats[id]?.floor = UInt64(after)
        if seat.heard == UInt64(after) { for key in seat.missing { due.insert(Duty(seat: id, key: key)) } }
        if seat.heard < UInt64(after) {
            // What it says it has heard it is not told again.
            seats[id]?.heard = UInt64(after)
        }
        seats[id]?.missing = []
        count("resumed")
    }

    /// A device that knows its session and comes back in time goes on with it, unless too much happened meanwhile.
    private func requireFresh(_ frame: Frame, _ place: Place, _ login: Login) throws(Violation) {
        guard let wanted = frame.params["resume"]?["session"]?.string, let seat = seats[wanted], seat.place == place,
            seat.room == login.room, let after = frame.params["resume"]?["after"]?.integer, seat.heard == UInt64(after),
            now < seat.lostAt.advanced(by: window - .milliseconds(2)), !wasFlooded(place.bearer)
        else { return }
        throw Violation(description: "\(place) comes back in time, and must start afresh")
    }

    /// Whether so much was told that the exchange need not have kept it all.
    private func wasFlooded(_ bearer: Bearer) -> Bool {
        if let unkeptAt, now < unkeptAt.advanced(by: .seconds(130)) { return true }
        let lately = load[bearer, default: []].filter { now.advanced(by: .seconds(-70)) < $0.at }
        return lately.count >= 250 || lately.reduce(0) { $0 + $1.bytes } > 600_000
    }

    func applyRenewal(_ frame: Frame, _ seat: Seat) throws(Violation) {
        let text = frame.text("token") ?? ""
        guard let (number, login) = grant(of: text) else {
            throw Violation(description: "a session is renewed with a token that is not good: \(frame.summary)")
        }
        try require(login.user == seat.user, "\(seat.place) is renewed with \(login.user)'s token")
        try require(login.room == seat.room, "\(seat.place) is renewed with a token for another room")
        let isGuest = if case .guest = seat.place.bearer { true } else { false }
        try require(login.isGuest == isGuest, "\(seat.place) is renewed with a token of another kind")
        if isGuest {
            let other = seats.values.first { $0.login == number && isAlive($0) } ?? seat
            try require(
                other.place.bearer == seat.place.bearer, "\(seat.place) is renewed with the token of \(other.place)")
        }
        use(text)
        seats[seat.id]?.login = number
        seats[seat.id]?.tokenEnds = credentials[text]?.expires ?? now
    }

    func applyEnd(_ seat: Seat) {
        for (invite, open) in calls {
            for call in open {
                guard let peer = call.peer(of: seat.place) else { continue }
                calls[invite]?.removeAll { $0 == call }
                if peer != seat.place { expect("callEnded \(invite) \(seat.user)", of: self.seat(at: peer)) }
            }
        }
        end(seat.id)
    }

    /// A device that registers is told of what waits for its user, as far as that fits.
    func applyRegistration(_ frame: Frame, _ seat: Seat) {
        seats[seat.id]?.isRegistered = true
        onceRegistered.insert(seat.place)
        let waiting = invites.values.filter {
            $0.states[seat.user] == .pending && $0.inviter != seat.place && $0.group == nil
        }
        guard waiting.reduce(0, { $0 + $1.bytes + 9_000 }) < SignalLimits.syncBytes else { return }
        for invite in waiting { expect("inviteReceived \(invite.id)", of: seats[seat.id]) }
    }
}
