@testable import ExchangeCore
import SignalWire
import Core

extension Oracle {
    /// Notes that events were told without being kept: who was away then starts afresh.
    func noteUnkept(_ count: Int) {
        guard count != unkept else { return }
        unkept = count
        unkeptAt = now
    }

    /// A session does not outlive its token.
    func checkTokens() throws(Violation) {
        for seat in seats.values where seat.connection.map({ closed[$0] == nil }) ?? false {
            let grace = seat.tokenEnds.advanced(by: .milliseconds(2))
            try require(now < grace, "\(seat.place) has a session whose token has ended")
        }
    }

    /// A login ends because somebody shows an old refresh token: that another has taken its place must be true.
    func endsAsCopied(_ text: String) throws(Violation) {
        guard let credential = credentials[text] else { return }
        let login = logins[credential.login]
        if login.isShownPerhaps, credential.isRefresh { return endLogin(credential.login) }
        let copiedFrom = login.generations[credential.generation] ?? nil
        try require(credential.isRefresh && copiedFrom != nil, "a login ends as copied, and no other token was used")
        // Of many exchanges in a minute the first have less than that.
        let isDue = copiedFrom.map { $0 <= now.advanced(by: .milliseconds(2)) } ?? false
        try require(isDue || login.generations.count > 7, "a login ends as copied, and its bearer had time yet")
        endLogin(credential.login)
    }
}

/// What is kept is counted up, by docs/protocol.md, and compared with what the quota says.
extension AttackersModel {
    func audit() throws {
        let core = exchange.core
        try auditQuota(core)
        let open = oracle.open
        try oracle.require(core.sessions.connections.allSatisfy(open.contains), "a connection is kept that is gone")
        try oracle.require(core.sessions.all.allSatisfy { open.contains($0.connection) }, "a session has no connection")
        for session in core.sessions.all {
            let seat = oracle.seat(on: session.connection)
            try oracle.require(
                seat?.id == session.id.text, "the core has another session on \(session.connection.name)")
            try oracle.require(seat?.isRegistered == session.isRegistered, "\(session.endpoint) is registered, or not")
        }
        for principal in core.streams.principals where principal.kind != .account {
            try oracle.require(core.sessions.has(principal), "events are kept for \(principal), who is gone")
        }
        try oracle.require(core.invites.hasConsistentKeys, "keys and invites differ")
        try oracle.require(core.invites.keyCount <= core.invites.count, "there are more keys than invites")
        let useful =
            core.invites.count * 2 + core.sessions.resumable.count * 3 + core.invites.calls.count + open.count * 2
        let most = 2 * max(1_024, useful + core.streams.count + 64) + 64
        try oracle.require(core.deadlineCount <= most, "\(core.deadlineCount) deadlines, \(useful) of use")
        if core.nextDeadline.map({ $0 > exchange.now }) ?? true { oracle.prune() }
    }

    private func auditQuota(_ core: ExchangeCore) throws {
        let (quota, limits) = (core.quota, core.quota.limits)
        var sum = 0
        let bodies = core.streams.bodies
        sum += bodies.count * 128
        sum += Set(bodies.map(\.number)).count * 128
        var texts: [UInt64: Int] = [:]
        for body in bodies { texts[body.number] = body.text.text.utf8.count }
        sum += texts.values.reduce(0, +)
        for invite in core.invites.all {
            let data = [invite.data, invite.payload, invite.timeoutPayload].reduce(0) { $0 + ($1?.bytes ?? 0) }
            sum += 512 + data + 128 * invite.invitees.count + 512 * invite.pending.count
        }
        sum += 512 * core.invites.calls.all.count
        for (_, push) in core.pushes.all {
            sum += 512 + push.target.token.secret.utf8.count + (push.payload?.bytes ?? 0)
        }
        for id in core.groups.ids {
            guard let group = core.groups[id] else { continue }
            sum += 512 + (group.name?.utf8.count ?? 0) + 128 * group.members.count
        }
        for endpoint in core.pushes.endpoints {
            sum += 512 + core.pushes.targets(of: endpoint).reduce(0) { $0 + 128 + $1.token.secret.utf8.count }
        }
        for id in core.sessions.resumable {
            guard let session = core.sessions.session(id) else { continue }
            let device = session.device
            sum += 512 + device.name.utf8.count + (device.pushToken?.secret.utf8.count ?? 0)
            sum += device.capabilities.reduce(0) { $0 + $1.text.utf8.count + 16 }
            if let room = session.room { sum += 256 + (room.data?.utf8.count ?? 0) }
            for room in core.rooms.rooms(of: id) {
                sum += 256 + (core.rooms.occupant(id, in: room)?.participant.data?.utf8.count ?? 0)
            }
        }
        try oracle.require(sum == quota.total, "\(sum) bytes are kept, and the quota says \(quota.total)")
        try oracle.require(quota.total <= limits.total, "\(quota.total) bytes are kept of \(limits.total)")
        try oracle.require(quota.guests <= limits.guests, "\(quota.guests) bytes are guests', of \(limits.guests)")
        for user in Self.attackers + Self.honest {
            let used = quota.used(by: .account(UserID(ours: user)))
            try oracle.require(used <= 2 * limits.user + (64 << 10), "\(user) has \(used) bytes")
        }
    }
}
