@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

/// Bob, whom others want to keep from being called; a friend, whose invite he has accepted; and many who are neither.
private struct Siege {
    static let users =
        ["bob", "friend", "alice"].map { Account(id: $0) } + (0..<66).map { Account(id: "mallory-\($0)") }

    var exchange: ExchangeScenario
    var connections: [UserID: ConnectionID] = [:]
    private var keys = 0

    init(isAcquainted: Bool = true) {
        exchange = ExchangeScenario(users: Self.users)
        guard isAcquainted, case .success(.invite(let sent)) = send("bob", by: "friend") else { return }
        _ = exchange.request(.inviteAccept(InviteAccept(invite: sent.invite)), from: connection("bob"))
    }

    init(_ exchange: ExchangeScenario) { self.exchange = exchange }

    mutating func connection(_ user: UserID) -> ConnectionID {
        if let known = connections[user] { return known }
        let connection = exchange.device("\(user)", of: user)
        connections[user] = connection
        return connection
    }

    mutating func send(
        _ to: UserID..., by user: UserID, group: GroupID? = nil, ttl: Double = 0
    ) -> Result<ClientResponse, RPCError> {
        keys += 1
        let params = InviteSend(to: to, group: group, ttl: ttl, idempotencyKey: "\(user) \(keys)")
        return exchange.request(.inviteSend(params), from: connection(user))
    }

    mutating func refusal(_ to: UserID..., by user: UserID, group: GroupID? = nil) -> RPCError? {
        keys += 1
        let params = InviteSend(to: to, group: group, ttl: 0, idempotencyKey: "\(user) \(keys)")
        guard case .failure(let error) = exchange.request(.inviteSend(params), from: connection(user)) else {
            return nil
        }
        return error
    }

    /// As many invites to Bob as the exchange takes from each of some; then they leave.
    mutating func flood(by attackers: some Sequence<Int>) -> Int {
        var taken = 0
        for number in attackers {
            let attacker = UserID(ours: "mallory-\(number)")
            while refusal("bob", by: attacker) == nil { taken += 1 }
            exchange.feed(.disconnected(connection(attacker)))
            connections[attacker] = nil
        }
        return taken
    }
}

@Suite struct InviteShareTests {
    @Test("INV-12: One account that sends until it is refused, and leaves, blocks no other from the same user")
    func oneAttacker() {
        var siege = Siege(isAcquainted: false)
        #expect(siege.flood(by: [0]) == SignalLimits.openInvitesOfPair)
        let refused = siege.refusal("bob", by: "mallory-0")
        #expect(refused?.known == .tooManyRequests)
        #expect(refused?.message.contains("has 8 unanswered invites from this user; cancel one") == true)
        #expect(siege.refusal("bob", by: "alice") == nil)
        #expect(siege.refusal("alice", by: "mallory-0") == nil, "with somebody else it has places of its own")
    }

    @Test(
        "INV-12: Up to 63 accounts that fill the strangers' share, and leave, keep no other stranger out, nor does a restart",
        arguments: [8, 9, 40, 63])
    func fewerThanPlaces(attackers: Int) {
        var siege = Siege(isAcquainted: false)
        _ = siege.flood(by: 0..<attackers)
        #expect(siege.exchange.core.strangersPlaces(with: "bob") == SignalLimits.openInvitesOfStrangers)
        siege = Siege(siege.exchange.restarted(users: Siege.users))
        for user in ["alice", "friend"] as [UserID] {
            #expect(siege.refusal("bob", by: user) == nil)
            #expect(siege.exchange.core.strangersPlaces(with: "bob") == SignalLimits.openInvitesOfStrangers)
            guard attackers == 63 else { continue }
            // That was the only one that had two.
            #expect(siege.refusal("bob", by: "friend")?.known == .tooManyRequests)
            return
        }
    }

    @Test(
        "INV-7, INV-12: The oldest invite of the stranger with most gives way, and both sides get a timeout")
    func givesWay() throws {
        var siege = Siege(isAcquainted: false)
        let bob = siege.connection("bob")
        var sent: [UserID: [InviteID]] = [:]
        // One has seven, seven have eight, and one has one: 64.
        for (number, count) in [7, 8, 8, 8, 8, 8, 8, 8, 1].enumerated() {
            let attacker = UserID(ours: "mallory-\(number)")
            for _ in 0..<count {
                guard case .success(.invite(let result)) = siege.send("bob", by: attacker) else { continue }
                sent[attacker, default: []].append(result.invite)
            }
        }
        #expect(siege.exchange.core.strangersPlaces(with: "bob") == 64)
        guard case .success(.invite(let new)) = siege.send("bob", by: "alice") else {
            Issue.record("alice is kept out")
            return
        }
        let loser = try #require(sent["mallory-1"]?.first)
        let told = ExchangeEvent.inviteTimedOut(InviteTimedOut(invite: loser, invitees: ["bob"]))
        #expect(siege.exchange.events(of: bob).contains(told))
        let heard = siege.exchange.events(of: siege.connection("mallory-1"))
        #expect(heard.contains(told))
        #expect(heard.contains(.inviteEnded(InviteEnded(invite: loser))), "nobody else was asked")
        #expect(siege.exchange.notes.contains(.inviteGaveWay(loser, with: "bob")))
        let accept = ClientRequest.inviteAccept(InviteAccept(invite: loser))
        #expect(siege.exchange.refusal(of: accept, from: bob) == .inviteTimedOut, "INV-10")
        #expect(
            siege.exchange.refusal(of: .inviteAccept(InviteAccept(invite: new.invite)), from: bob) == nil)
        let others = sent.values.joined().filter { $0 != loser }
        #expect(others.allSatisfy { siege.exchange.core.invites[$0]?.isEnded == false })
    }

    @Test("INV-12: Strangers who have one invite each keep theirs, and none takes a place from another in turn")
    func handsRaised() {
        var siege = Siege(isAcquainted: false)
        for number in 0..<64 { #expect(siege.refusal("bob", by: UserID(ours: "mallory-\(number)")) == nil) }
        for number in 0..<66 {
            let refused = siege.refusal("bob", by: UserID(ours: "mallory-\(number)"))
            #expect(refused?.known == .tooManyRequests)
        }
        #expect(siege.exchange.core.invites.places(with: "bob").byInviter.count == 64)
        #expect(!siege.exchange.notes.contains { if case .inviteGaveWay = $0 { true } else { false } })
    }

    @Test("INV-3: An invite that gives way with one of its invitees rings on with the others")
    func givesWayWithOne() throws {
        var siege = Siege(isAcquainted: false)
        var first: InviteID?
        for number in 0..<8 {
            for _ in 0..<8 {
                let attacker = UserID(ours: "mallory-\(number)")
                guard case .success(.invite(let result)) = siege.send("bob", "friend", by: attacker) else { continue }
                first = first ?? result.invite
            }
        }
        #expect(siege.refusal("bob", by: "alice") == nil)
        let oldest = try #require(first)
        let record = try #require(siege.exchange.core.invites[oldest])
        #expect(record.state(of: "bob") == .timedOut && record.state(of: "friend") == .pending && !record.isEnded)
        #expect(siege.exchange.core.strangersPlaces(with: "friend") == 64)
    }

    @Test("INV-12: A request that is refused for another reason uses up no limit")
    func refusedTakesNothing() {
        var siege = Siege(isAcquainted: false)
        _ = siege.flood(by: 0..<8)
        for _ in 0..<8 { #expect(siege.refusal("friend", by: "alice") == nil) }
        #expect(
            siege.refusal("bob", "friend", by: "alice")?.message.contains("8 unanswered invites from this user") == true
        )
        #expect(siege.exchange.core.invites.places(with: "bob").byInviter.values.allSatisfy { $0 == 8 })
    }

    @Test("INV-12: 64 accounts fill the strangers' share and no more, and whose call Bob has accepted gets through")
    func asManyAsPlaces() {
        var siege = Siege()
        _ = siege.flood(by: 0..<64)
        #expect(siege.exchange.core.strangersPlaces(with: "bob") == SignalLimits.openInvitesOfStrangers)
        let refused = siege.refusal("bob", by: "alice")
        #expect(refused?.known == .tooManyRequests)
        #expect(refused?.message.contains("64 unanswered invites from users whose invites it never") == true)
        for _ in 0..<8 { #expect(siege.refusal("bob", by: "friend") == nil) }
        #expect(siege.refusal("bob", by: "friend")?.message.contains("8 unanswered invites from this user") == true)
    }

    @Test("INV-12: A user who was called can call back while strangers have filled their share")
    func callBack() {
        var siege = Siege(isAcquainted: false)
        _ = siege.flood(by: 0..<64)
        #expect(siege.refusal("bob", by: "alice") != nil)
        #expect(siege.refusal("alice", by: "bob") == nil)
        #expect(siege.refusal("bob", by: "alice") == nil)
    }

    @Test("INV-12: A stranger who adds a user to a group, or joins its room, is no acquaintance")
    func groups() {
        var siege = Siege(isAcquainted: false)
        _ = siege.flood(by: 0..<64)
        let create = GroupCreate(group: "trap", members: ["bob"])
        let mallory = siege.connection("mallory-65")
        #expect(siege.exchange.refusal(of: .groupCreate(create), from: mallory) == nil)
        #expect(siege.refusal("bob", by: "mallory-65", group: "trap")?.known == .tooManyRequests)
        #expect(siege.exchange.core.strangersPlaces(with: "bob") == 64)
    }

    @Test("INV-12: An invite that one of several invitees has no place for is refused whole, and changes nothing")
    func refusedWhole() {
        var siege = Siege(isAcquainted: false)
        _ = siege.flood(by: 0..<64)
        let friend = siege.connection("friend")
        let before = siege.exchange.changes.count
        #expect(siege.refusal("friend", "bob", by: "alice")?.known == .tooManyRequests)
        #expect(siege.exchange.events(of: friend).isEmpty)
        let written = siege.exchange.changes.dropFirst(before).filter { if case .invite = $0 { true } else { false } }
        #expect(written.isEmpty && siege.exchange.core.invites.places(with: "friend").count == 0)
        #expect(
            !siege.exchange.core.accounts.acquaintances.has("alice", "friend"), "who was not called is not known by it")
    }

    @Test("INV-12: A place is free once that invitee has answered, before the others of the same invite")
    func placesOfSeveral() {
        var siege = Siege(isAcquainted: false)
        var sent: [InviteID] = []
        for _ in 0..<8 {
            guard case .success(.invite(let result)) = siege.send("bob", "friend", by: "alice") else { continue }
            sent.append(result.invite)
        }
        #expect(sent.count == 8 && siege.refusal("bob", by: "alice") != nil)
        let bob = siege.connection("bob")
        #expect(siege.exchange.refusal(of: .inviteReject(InviteReject(invite: sent[0])), from: bob) == nil)
        #expect(siege.refusal("bob", by: "alice") == nil)
        #expect(siege.refusal("friend", by: "alice") != nil, "the other has still to answer")
        let alice = siege.connection("alice")
        for invite in sent {
            _ = siege.exchange.refusal(of: .inviteCancel(InviteCancel(invite: invite)), from: alice)
        }
        #expect(siege.exchange.core.invites.places(with: "friend").count == 0)
        #expect(siege.exchange.core.invites.places(with: "bob").count == 1)
    }

    @Test("INV-12: An account that is removed gives its places back, also if the exchange was down then")
    func removed() {
        for isDown in [false, true] {
            var siege = Siege(isAcquainted: false)
            _ = siege.flood(by: 0..<64)
            #expect(siege.refusal("bob", by: "alice") != nil)
            let left = Siege.users.filter { $0.id != "mallory-3" }
            if isDown {
                siege = Siege(siege.exchange.restarted(after: .milliseconds(1), users: left))
            } else {
                siege.exchange.feed(.accountsChanged(left))
            }
            #expect(siege.exchange.core.strangersPlaces(with: "bob") == 63)
            #expect(siege.refusal("bob", by: "alice") == nil)
        }
    }

    @Test("INV-12: An account that is removed and made again is a stranger, also if the exchange was down meanwhile")
    func madeAnew() {
        let left = Siege.users.filter { $0.id != "friend" }
        var siege = Siege()
        #expect(siege.exchange.core.accounts.acquaintances.has("bob", "friend"))
        var next = siege.exchange.restarted(users: left)
        next.feed(.timer)
        #expect(next.changes.contains(.acquaintancesForgotten(of: "friend")))
        #expect(!next.core.accounts.acquaintances.has("bob", "friend"))
        siege.exchange.feed(.accountsChanged(left))
        siege.exchange.feed(.accountsChanged(Siege.users))
        #expect(!siege.exchange.core.accounts.acquaintances.has("bob", "friend"))
        #expect(siege.exchange.saved.acquaintances.allSatisfy { $0.user != "friend" && $0.owner != "friend" })
    }

    @Test("INV-12, GRP-2: No member keeps others from asking in a group: each has a first place, the owner eight")
    func shareOfGroup() {
        var siege = Siege(isAcquainted: false)
        let members = (0..<40).map { UserID(ours: "mallory-\($0)") }
        let create = GroupCreate(group: "g", members: ["alice", "friend"] + members)
        #expect(siege.exchange.refusal(of: .groupCreate(create), from: siege.connection("bob")) == nil)
        for (index, attacker) in members.enumerated() {
            // Each asks another, so that no invitee's places run out.
            let asked = UserID(ours: "mallory-\((index + 1) % 40)")
            while siege.refusal(asked, by: attacker, group: "g") == nil {}
        }
        #expect(siege.exchange.core.invites.places(in: "g").count == 40 + SignalLimits.openInvitesBeyondFirst)
        #expect(siege.refusal("friend", by: "alice", group: "g") == nil)
        let refused = siege.refusal("friend", by: "alice", group: "g")
        #expect(refused?.message.contains("48 open invites beyond their first") == true)
        for _ in 0..<8 { #expect(siege.refusal("friend", by: "bob", group: "g") == nil) }
        #expect(siege.refusal("friend", by: "bob", group: "g")?.known == .tooManyRequests)
    }

    @Test("INV-12, INV-16: After a restart friends are still known, strangers' places taken, and none counts twice")
    func restart() {
        var siege = Siege()
        _ = siege.flood(by: 0..<64)
        #expect(siege.refusal("bob", by: "friend") == nil)
        var next = Siege(siege.exchange.restarted(users: Siege.users))
        #expect(next.exchange.core.invites.places(with: "bob").count == 65)
        #expect(next.refusal("bob", by: "alice")?.known == .tooManyRequests)
        for _ in 0..<7 { #expect(next.refusal("bob", by: "friend") == nil) }
        #expect(next.refusal("bob", by: "friend")?.known == .tooManyRequests)
    }
}
