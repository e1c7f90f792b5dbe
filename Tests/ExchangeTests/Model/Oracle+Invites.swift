import JSON
import SignalWire
import Core

extension Oracle {
    /// How far somebody has come with an invite.
    enum Answer: Hashable {
        case pending
        case answered(String, by: String)
        case released
    }

    struct Invite {
        let id: String
        /// Rises from invite to invite.
        let number: Int
        let inviter: Place
        let user: String
        let invitees: [String]
        /// `nil` from when that was dismissed.
        var group: String?
        /// Those who were in it by then, and may still come back for what they were told.
        var formerMembers: Set<String> = []
        var states: [String: Answer]
        let hasTimeoutPayload: Bool
        /// When it is due to time out.
        var ends: Instant?
        var overAt: Instant?
        var secrets: [String]
        /// Bytes of the frames that made it what it is.
        var bytes: Int

        var isOver: Bool { !states.values.contains(.pending) }
        var pending: [String] { invitees.filter { states[$0] == .pending } }
    }

    struct CallModel: Hashable {
        var inviter: Place
        var invitee: Place

        func peer(of place: Place) -> Place? {
            place == inviter ? invitee : place == invitee ? inviter : nil
        }
    }

    /// The devices that an invite rings at a user's.
    private func ringing(_ user: String, _ invite: Invite) -> [Seat] {
        registered(user, except: invite.user == user ? invite.inviter.device : nil)
    }

    private func expect(_ key: String, _ invite: Invite, of users: [String], but done: [String] = []) {
        let members = invite.group.flatMap { groups[$0]?.members } ?? []
        for user in Set(users + members) where !done.contains(user) {
            for seat in ringing(user, invite) { expect(key, of: seat) }
        }
    }

    // MARK: - Requests

    func applySend(_ frame: Frame, _ seat: Seat, _ result: HeardResult.Body) throws(Violation) {
        guard let id = result.invite, let key = frame.text("idempotency_key") else { return }
        let known = "\(seat.user) \(key)"
        if let before = keys[known] {
            let isForgotten = invites[before]?.overAt.map { $0.advanced(by: .seconds(299)) < now } ?? false
            try require(before == id || isForgotten, "\(seat.user) repeats \(key), and gets another invite")
            if before == id { return }
        }
        try require(
            invites[id] == nil, "\(seat.user) asks with \(key), and is given \(id), an invite that is there already")
        var wanted = [frame.text("to") ?? ""]
        if case .array(let all)? = frame.params["to"] { wanted = all.map { $0.string ?? "" } }
        var invitees: [String] = []
        for user in wanted.map({ names[$0] ?? "" }) where !invitees.contains(user) { invitees.append(user) }
        try require(result.invitees == invitees, "\(result.invitees ?? []) are asked instead of \(invitees)")
        let group = frame.text("group")
        if let group {
            let members = groups[group]?.members ?? []
            try require(members.contains(seat.user), "\(seat.place) invites in a group that it is not in")
            try require(invitees.allSatisfy(members.contains), "somebody is invited who is not in the group")
        }
        let ttl: Double = seconds(frame.params["ttl"])
        let invite = Invite(
            id: id, number: nextInvite(), inviter: seat.place, user: seat.user, invitees: invitees, group: group,
            states: Dictionary(uniqueKeysWithValues: invitees.map { ($0, .pending) }),
            hasTimeoutPayload: frame.params["timeout_payload"].map { $0 != .null } ?? false,
            ends: ttl > 0 ? now.advanced(by: .seconds(ttl)) : nil, secrets: frame.markers + [id],
            bytes: frame.bytes.count)
        invites[id] = invite
        for invitee in invitees { meet(seat.user, invitee) }
        keys[known] = id
        remember(.invite, id)
        allow(invite.secrets, accounts([seat.user] + invitees + (group.flatMap { groups[$0]?.members } ?? [])))
        expect("inviteReceived \(id)", invite, of: invitees)
    }

    private func seconds(_ value: JSONValue?) -> Double {
        switch value {
        case .number(let value): value
        case .integer(let value): Double(value)
        default: 0
        }
    }

    func applyAnswer(_ frame: Frame, _ seat: Seat, _ action: String) throws(Violation) {
        let id = frame.text("invite") ?? ""
        guard var invite = invites[id], let state = invite.states[seat.user] else {
            throw Violation(description: "\(seat.place) answers an invite that is not for it: \(id)")
        }
        try require(seat.isRegistered, "\(seat.place) answers and is not registered")
        let answer = Answer.answered(action, by: seat.place.device)
        guard state != answer else { return }
        try require(state == .pending, "\(seat.place) has \(action) what is \(state)")
        invite.states[seat.user] = answer
        if invite.isOver { invite.overAt = now }
        invites[id] = invite
        let members = invite.group.flatMap { groups[$0]?.members } ?? []
        allow(frame.markers, accounts([invite.user] + members))
        let type = action == "accepted" ? "inviteAccepted" : "inviteRejected"
        expect("\(type) \(id) \(seat.user)", of: self.seat(at: invite.inviter))
        for member in members where member != seat.user {
            for other in ringing(member, invite) { expect("\(type) \(id) \(seat.user)", of: other) }
        }
        for other in registered(seat.user, except: seat.place.device) { expect("inviteHandled \(id)", of: other) }
        if action == "accepted" {
            meet(seat.user, invite.user)
            calls[id, default: []].append(CallModel(inviter: invite.inviter, invitee: seat.place))
        }
        if invite.isOver { expect("inviteEnded \(id)", of: self.seat(at: invite.inviter)) }
    }

    func applyChange(_ frame: Frame, _ seat: Seat, cancels: Bool) throws(Violation) {
        let id = frame.text("invite") ?? ""
        guard var invite = invites[id] else { throw Violation(description: "\(frame.method) of no invite: \(id)") }
        try require(invite.user == seat.user, "\(seat.place) \(frame.method) \(invite.inviter)'s invite")
        let pending = invite.pending
        try require(!pending.isEmpty, "\(frame.method) of an invite that is over")
        let members = invite.group.flatMap { groups[$0]?.members } ?? []
        allow(frame.markers, accounts(pending + members + [seat.user]))
        if cancels {
            // The note of it says what follows.
            return
        }
        invite.secrets += frame.markers
        invite.bytes = max(invite.bytes, frame.bytes.count)
        invites[id] = invite
        // Who has to do with it is told of its data when it asks what is open.
        allow(frame.markers, accounts(invite.invitees))
        expect("inviteModified \(id)", invite, of: pending)
    }

    /// An invite was taken back, by its inviter or because that has no account any more.
    func withdrawn(_ id: String) { release(id, "inviteCancelled \(id)") }

    func timeOut(_ id: String) throws(Violation) {
        guard let invite = invites[id] else { return }
        let isDue = invite.ends.map { $0 <= now.advanced(by: .milliseconds(1)) } ?? false
        try require(isDue || endedByOperator.contains(id), "\(id) times out too early")
        let key = "inviteTimedOut \(id) \(invite.pending.joined(separator: ","))"
        release(id, key)
        expect(key, of: seat(at: invite.inviter))
    }

    /// An invite lost its place with one invitee to a stranger who had fewer.
    func gaveWay(_ id: String, with user: String) throws(Violation) {
        guard let invite = invites[id] else { return }
        count("gave way")
        let strangers = strangersInvites(to: user)
        let counts = Dictionary(grouping: strangers, by: \.user).mapValues(\.count)
        try require(strangers.contains { $0.id == id }, "\(id) gives way with \(user), who knows \(invite.user)")
        // The newcomer's is among them by now.
        try require(strangers.count > strangersShare, "\(id) gives way, and \(user) has \(strangers.count) invites")
        try require(counts[invite.user] == counts.values.max(), "\(id) gives way, and \(invite.user) has not the most")
        let isOldest = strangers.allSatisfy { counts[$0.user] != counts[invite.user] || $0.number >= invite.number }
        try require(isOldest, "\(id) gives way, and is not the oldest")
        let key = "inviteTimedOut \(id) \(user)"
        release(id, key, user)
        expect(key, of: seat(at: invite.inviter))
    }

    /// A stranger is kept out although another has at least two places more.
    func judgeStrangersShare(_ frame: Frame, _ error: RPCError) throws(Violation) {
        guard error.message.contains("users whose invites it never accepted"), let seat = seat(on: frame.connection)
        else { return }
        count("strangers kept out")
        var wanted = [frame.text("to") ?? ""]
        if case .array(let all)? = frame.params["to"] { wanted = all.map { $0.string ?? "" } }
        let isFair = wanted.compactMap { names[$0] }.contains { user in
            let counts = Dictionary(grouping: strangersInvites(to: user), by: \.user).mapValues(\.count)
            let most = counts.values.max() ?? 0
            let isFull = counts.values.reduce(0, +) >= strangersShare
            return isFull && !knows(user, seat.user) && most <= counts[seat.user, default: 0] + 1
        }
        try require(isFair, "\(seat.user) is kept out by a stranger with more places: \(frame.summary)")
    }

    private func strangersInvites(to user: String) -> [Invite] {
        invites.values.filter { $0.states[user] == .pending && !knows(user, $0.user) }
    }

    private func release(_ id: String, _ key: String, _ user: String? = nil) {
        guard var invite = invites[id] else { return }
        let pending = invite.pending.filter { user == nil || $0 == user }
        for user in pending { invite.states[user] = .released }
        if invite.isOver { invite.overAt = now }
        invites[id] = invite
        expect(key, invite, of: pending)
        if invite.hasTimeoutPayload {
            for user in pending { for seat in ringing(user, invite) { expect("inviteMissed \(id)", of: seat) } }
        }
        if invite.isOver { expect("inviteEnded \(id)", of: seat(at: invite.inviter)) }
    }

    // MARK: - Calls

    func applySignal(_ frame: Frame, _ seat: Seat) throws(Violation) {
        let id = frame.text("invite") ?? ""
        guard let invite = invites[id] else { throw Violation(description: "a signal in no call: \(id)") }
        let peer = frame.text("peer")
        let peers = (calls[id] ?? []).compactMap { $0.peer(of: seat.place) }.filter {
            peer == nil || $0.bearer == account(peer ?? "")
        }
        let ringing = invite.inviter == seat.place ? invite.pending.filter { peer == nil || peer == $0 } : []
        let rings = invite.states[seat.user] == .pending && seat.isRegistered
        let mayTell = peers.map(\.bearer) + accounts(ringing) + (rings ? [invite.inviter.bearer] : [])
        try require(!mayTell.isEmpty, "\(seat.place) signals in an invite that it has nothing to do with")
        allow(frame.markers, mayTell)
        if ringing.isEmpty, !rings, peers.count == 1, let only = peers.first, let there = self.seat(at: only),
            there.connection != nil
        {
            expect("callSignal \(frame.text("type") ?? "")", of: there)
        }
    }

    func applyProbe(_ frame: Frame, _ seat: Seat, _ result: HeardResult.Body) throws(Violation) {
        let id = frame.text("invite") ?? ""
        let peer = frame.text("peer")
        let peers = (calls[id] ?? []).compactMap { $0.peer(of: seat.place) }.filter {
            peer == nil || $0.bearer == account(peer ?? "")
        }
        try require(!peers.isEmpty, "\(seat.place) probes a call that it is not in: \(id)")
        guard peers.count == 1, let only = peers.first, self.seat(at: only)?.connection != nil else { return }
        try require(result.present == true, "\(only) is connected, and \(seat.place) learns that it is gone")
    }

    func applyHangUp(_ frame: Frame, _ seat: Seat) throws(Violation) {
        let id = frame.text("invite") ?? ""
        let peer = frame.text("peer")
        let own = (calls[id] ?? []).filter { call in
            call.peer(of: seat.place).map { peer == nil || $0.bearer == account(peer ?? "") } ?? false
        }
        guard let call = own.first, let other = call.peer(of: seat.place) else {
            throw Violation(description: "\(seat.place) hangs up a call that it is not in: \(id)")
        }
        // Of several that may be meant only the exchange knows which are over.
        guard own.count == 1 else { return }
        calls[id]?.removeAll { $0 == call }
        expect("callEnded \(id) \(seat.user)", of: self.seat(at: other))
    }

    /// A call is over, however it ended.
    ///
    /// - Parameter isOrphan: Nobody has ended it: both its devices must have been away for the resume window.
    func callEnds(_ id: String, _ invitee: String, isOrphan: Bool) throws(Violation) {
        for call in calls[id] ?? [] where call.invitee.bearer == account(invitee) {
            calls[id]?.removeAll { $0 == call }
            guard isOrphan else { continue }
            for place in [call.inviter, call.invitee] {
                let isAway = seats.values.allSatisfy { seat in
                    let until = seat.lostAt.advanced(by: window - .milliseconds(2))
                    return seat.place != place || (seat.connection == nil && until <= now)
                }
                try require(isAway, "a call of \(id) is dropped, and \(place) may still come back")
            }
        }
    }
}
