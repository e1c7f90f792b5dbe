@testable import ExchangeCore
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

/// What the rule about places says must come of each request, worked out with plain lists.
private struct Expectation {
    struct Open {
        var id: InviteID
        var inviter: UserID
        var pending: Set<UserID>
        var ends: Instant?
    }

    var open: [Open] = []
    /// Whom each user knows.
    var known: [UserID: Set<UserID>] = [:]

    func places(with user: UserID, of isMeant: (UserID) -> Bool = { _ in true }) -> Int {
        open.count { $0.pending.contains(user) && isMeant($0.inviter) }
    }

    func knows(_ owner: UserID, _ user: UserID) -> Bool { owner == user || known[owner]?.contains(user) == true }

    func takes(_ invitees: [UserID], from inviter: UserID) -> Bool {
        open.count { $0.inviter == inviter } < 256
            && invitees.allSatisfy { invitee in
                guard places(with: invitee, of: { $0 == inviter }) < 8 else { return false }
                guard isFull(for: inviter, with: invitee) else { return places(with: invitee) < 256 }
                return yielding(with: invitee, to: inviter) != nil
            }
    }

    /// Whether the strangers' share with an invitee is full, and `inviter` is one of them.
    func isFull(for inviter: UserID, with invitee: UserID) -> Bool {
        !knows(invitee, inviter) && places(with: invitee) { !knows(invitee, $0) } >= 64
    }

    /// Which invite gives way.
    func yielding(with invitee: UserID, to inviter: UserID) -> Int? {
        let strangers = open.indices.filter {
            open[$0].pending.contains(invitee) && !knows(invitee, open[$0].inviter)
        }
        let counts = Dictionary(grouping: strangers) { open[$0].inviter }.mapValues(\.count)
        guard let most = counts.values.max(), most > counts[inviter, default: 0] + 1 else { return nil }
        return strangers.first { counts[open[$0].inviter] == most }
    }

    mutating func drop(at now: Instant) {
        open.removeAll { invite in invite.pending.isEmpty || invite.ends.map { $0 <= now } == true }
    }
}

/// A crowd that sends, answers, cancels, waits and restarts the exchange, at random.
private struct Crowd {
    static let users = ["bob"] + (0..<60).map { UserID(ours: "user-\($0)") }
    static let accounts = users.map { Account(id: $0) }

    var exchange = ExchangeScenario(users: Self.accounts)
    var expected = Expectation()
    var connections: [UserID: ConnectionID] = [:]
    var generator: SeededGenerator
    var steps = 0
    var fullest = (all: 0, strangers: 0)
    /// Places that strangers gave to others.
    var given = 0

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    mutating func connection(_ user: UserID) -> ConnectionID {
        if let known = connections[user] { return known }
        connections[user] = exchange.device("d", of: user)
        return connection(user)
    }

    mutating func someone() -> UserID { Self.users.randomElement(using: &generator) ?? "bob" }

    mutating func step() {
        steps += 1
        switch Int.random(in: 0..<1_000, using: &generator) {
        case 0..<800: send()
        case 800..<900: answer()
        case 900..<960: cancel()
        case 960..<996: exchange.advance(by: .seconds(1))
        default:
            exchange = ExchangeScenario(
                restoring: exchange.saved, at: exchange.timeline.now, users: Self.accounts, after: exchange.changes,
                run: RunSeed(integerLiteral: UInt64(steps) + 1))
            connections = [:]
        }
        expected.drop(at: exchange.timeline.now)
    }

    mutating func send() {
        let inviter = someone()
        var invitees: [UserID] = ["bob"]
        if Int.random(in: 0..<5, using: &generator) == 0 { invitees.append(someone()) }
        // Bob calls some of them himself.
        if inviter == "bob" { invitees = [someone()] }
        invitees = invitees.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        let ttl = Int.random(in: 0..<8, using: &generator) == 0 ? 20.0 : 0
        let takes = expected.takes(invitees, from: inviter)
        let yielding = invitees.map { invitee in
            expected.isFull(for: inviter, with: invitee) ? expected.yielding(with: invitee, to: inviter) : nil
        }
        let params = InviteSend(to: invitees, ttl: ttl, idempotencyKey: "\(steps)")
        switch exchange.request(.inviteSend(params), from: connection(inviter)) {
        case .success(.invite(let sent)):
            #expect(takes, "step \(steps): \(inviter) to \(invitees)")
            for (invitee, index) in zip(invitees, yielding) {
                guard let index else { continue }
                expected.open[index].pending.remove(invitee)
                given += 1
            }
            let ends = ttl > 0 ? exchange.timeline.now.advanced(by: .seconds(ttl)) : nil
            expected.open.append(.init(id: sent.invite, inviter: inviter, pending: Set(invitees), ends: ends))
            expected.known[inviter, default: []].formUnion(invitees)
        case .failure(let error):
            #expect(
                !takes && error.known == .tooManyRequests,
                "step \(steps): \(inviter) to \(invitees): \(error.message)")
        case .success: Issue.record("another answer")
        }
    }

    mutating func answer() {
        guard let index = expected.open.indices.randomElement(using: &generator),
            let user = expected.open[index].pending.min()
        else { return }
        let invite = expected.open[index]
        // The device that sent it does not answer it.
        guard user != invite.inviter else { return }
        let accepts = Int.random(in: 0..<4, using: &generator) == 0
        let request: ClientRequest =
            accepts
            ? .inviteAccept(InviteAccept(invite: invite.id)) : .inviteReject(InviteReject(invite: invite.id))
        #expect(exchange.refusal(of: request, from: connection(user)) == nil)
        expected.open[index].pending.remove(user)
        if accepts { expected.known[user, default: []].insert(invite.inviter) }
    }

    mutating func cancel() {
        guard let index = expected.open.indices.randomElement(using: &generator) else { return }
        let invite = expected.open.remove(at: index)
        let request = ClientRequest.inviteCancel(InviteCancel(invite: invite.id))
        #expect(exchange.refusal(of: request, from: connection(invite.inviter)) == nil)
    }

    /// The exchange counts what is there, and no more than the rule allows.
    mutating func check() {
        for user in ["bob", "user-0", "user-1"] as [UserID] {
            let places = exchange.core.invites.places(with: user)
            let strangers = expected.places(with: user) { !expected.knows(user, $0) }
            #expect(places.count == expected.places(with: user) && places.count <= 256)
            #expect(exchange.core.strangersPlaces(with: user) == strangers && strangers <= 64)
            #expect(places.byInviter.values.allSatisfy { (1...8).contains($0) })
            fullest = (max(fullest.all, places.count), max(fullest.strangers, strangers))
        }
    }
}

@Suite struct InviteShareModelTests {
    @Test(
        "INV-12: For any requests in any order, a pair has 8 open invites and strangers 64 at most, and no other user waits",
        arguments: [1, 2, 3] as [UInt64])
    func anyOrder(seed: UInt64) {
        var crowd = Crowd(seed: seed)
        for _ in 0..<40 {
            for _ in 0..<50 { crowd.step() }
            crowd.check()
        }
        #expect(crowd.fullest.strangers == 64 && crowd.given > 0, "the test comes to the edge: \(crowd.fullest)")
    }
}
