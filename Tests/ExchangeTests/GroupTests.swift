@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import Testing
import Core

@Suite struct GroupTests {
    @Test("GRP-1: Groups are made, joined, left and dismissed, and every member's devices hear each change")
    func lifetime() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        let carol = scenario.device("c", of: "carol")
        func heard(_ change: GroupChanged.Change, by user: UserID, _ members: [UserID]? = nil) -> [ExchangeEvent] {
            let name = change == .created ? "Class" : nil
            return [
                .groupChanged(GroupChanged(group: "class", change: change, user: user, members: members, name: name))
            ]
        }
        let create = GroupCreate(group: "class", name: "Class", members: ["+15550100", "bob", "alice"])
        #expect(scenario.request(.groupCreate(create), from: alice) == .success(.group(.init(group: "class"))))
        for device in [alice] + bobs {
            #expect(scenario.events(of: device) == heard(.created, by: "alice", ["alice", "bob"]))
        }
        #expect(scenario.refusal(of: .groupJoin(GroupJoin(group: "class")), from: carol) == nil)
        for device in [alice, carol] + bobs { #expect(scenario.events(of: device) == heard(.joined, by: "carol")) }
        #expect(scenario.refusal(of: .groupJoin(GroupJoin(group: "class")), from: carol) == nil)
        #expect(scenario.events(of: alice).isEmpty, "joining twice changes nothing")
        let members = GroupMembers.Result(
            group: "class", name: "Class", owner: "alice", members: ["alice", "bob", "carol"])
        #expect(
            scenario.request(.groupMembers(GroupMembers(group: "class")), from: carol) == .success(.members(members)))

        #expect(scenario.refusal(of: .groupLeave(GroupLeave(group: "class")), from: bobs[0]) == nil)
        for device in [alice, carol] + bobs { #expect(scenario.events(of: device) == heard(.left, by: "bob")) }
        #expect(scenario.refusal(of: .groupLeave(GroupLeave(group: "class")), from: alice) == .notAllowed)
        #expect(scenario.refusal(of: .groupDismiss(GroupDismiss(group: "class")), from: carol) == .notYours)
        #expect(scenario.refusal(of: .groupDismiss(GroupDismiss(group: "class")), from: alice) == nil)
        for device in [alice, carol] { #expect(scenario.events(of: device) == heard(.dismissed, by: "alice")) }
        for bob in bobs { #expect(scenario.events(of: bob).isEmpty) }
        #expect(scenario.refusal(of: .groupMembers(GroupMembers(group: "class")), from: alice) == .unknownGroup)
        #expect(scenario.request(.groupList(GroupList()), from: alice) == .success(.groups(.init(groups: []))))
    }

    @Test("GRP-1: A member's device that is connected and not registered hears each change, when it resumes too")
    func unregisteredDevices() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob", registers: false)
        let point = scenario.resumePoint(of: bob)
        let create = GroupCreate(group: "class", members: ["bob"])
        #expect(scenario.request(.groupCreate(create), from: alice) == .success(.group(.init(group: "class"))))
        let created = ExchangeEvent.groupChanged(
            GroupChanged(group: "class", change: .created, user: "alice", members: ["alice", "bob"]))
        #expect(scenario.events(of: bob) == [created])

        scenario.feed(.disconnected(bob))
        #expect(scenario.refusal(of: .groupDismiss(GroupDismiss(group: "class")), from: alice) == nil)
        let again = scenario.connect()
        let start = SessionStart(
            token: Redacted("token of bob"), device: DeviceDescription(id: "b", name: "b"), resume: point)
        #expect(scenario.refusal(of: .sessionStart(start), from: again) == nil)
        let dismissed = ExchangeEvent.groupChanged(GroupChanged(group: "class", change: .dismissed, user: "alice"))
        #expect(scenario.events(of: again) == [created, dismissed], "once each, in order")
    }

    @Test("GRP-1: The exchange names a group that its owner does not; a name that is taken is refused to others only")
    func names() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        func create(_ group: GroupID?, from device: ConnectionID) -> Result<ClientResponse, RPCError> {
            scenario.request(.groupCreate(GroupCreate(group: group)), from: device)
        }
        let first = create(nil, from: alice)
        #expect(first != create(nil, from: alice))
        #expect(create("g", from: alice) == create("g", from: alice))
        guard case .failure(let error) = create("g", from: bob) else { return #expect(Bool(false), "taken twice") }
        #expect(error.known == .groupExists)
        guard case .success(.groups(let list)) = scenario.request(.groupList(GroupList()), from: alice) else { return }
        #expect(list.groups.count == 3 && list.groups.contains { $0.group == "g" })
    }

    @Test(
        "GRP-1: Strangers fill no more than a share of a user's groups; it joins others, and its acquaintances can add it"
    )
    func shareOfStrangers() {
        let strangers = (0..<3).map { UserID(ours: "mallory-\($0)") }
        var scenario = ExchangeScenario(users: ExchangeScenario.users + strangers.map { Account(id: $0) })
        func create(_ group: GroupID, by device: ConnectionID) -> RPCErrorCode? {
            scenario.refusal(of: .groupCreate(GroupCreate(group: group, members: ["bob"])), from: device)
        }
        var added = 0
        for stranger in strangers {
            let device = scenario.device("m", of: stranger)
            for number in 0..<SignalLimits.groupsOwned
            where create("\(stranger) \(number)", by: device) == nil { added += 1 }
        }
        #expect(added == SignalLimits.groupsOfStrangers)
        let (alice, bob) = (scenario.device("a", of: "alice"), scenario.device("b", of: "bob"))
        #expect(create("alice's", by: alice) == .tooManyRequests)
        #expect(scenario.refusal(of: .groupCreate(GroupCreate(group: "open")), from: alice) == nil)
        #expect(scenario.refusal(of: .groupJoin(GroupJoin(group: "open")), from: bob) == nil)
        #expect(scenario.refusal(of: .groupCreate(GroupCreate(group: "bob's")), from: bob) == nil)
        _ = scenario.invite("alice", from: bob)
        #expect(create("alice's", by: alice) == nil)
    }

    @Test("GRP-1: Groups, their names and their members are bounded, and members are users")
    func bounds() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        func refusal(_ create: GroupCreate) -> RPCErrorCode? {
            scenario.refusal(of: .groupCreate(create), from: alice)
        }
        let long = String(repeating: "g", count: 257)
        #expect(refusal(GroupCreate(name: "class\u{202E}7")) == .invalidParams)
        #expect(refusal(GroupCreate(name: "class\0")) == .invalidParams)
        #expect(refusal(GroupCreate(name: long)) == .tooLarge)
        #expect(refusal(GroupCreate(members: ["nobody"])) == .unknownUser)
        #expect(refusal(GroupCreate(members: Array(repeating: "bob", count: 200))) == .tooLarge)
        for number in 0..<64 { #expect(refusal(GroupCreate(group: "\(number)")) == nil) }
        #expect(refusal(GroupCreate(group: "one too many")) == .tooManyRequests)
        _ = scenario.request(.groupDismiss(GroupDismiss(group: "0")), from: alice)
        #expect(refusal(GroupCreate(group: "another")) == nil)
    }

    @Test("GRP-1: A full group accepts no member, nor does a user with the allowed number of groups join one")
    func capacity() throws {
        var groups = Groups()
        var effects = Effects(.init(), run: 1)
        for number in 0..<3 {
            groups.restore(Group(id: "\(number)", name: nil, owner: "o\(number)", members: ["o\(number)", "u"]))
        }
        #expect(groups.joins("u") == 3 && groups.owns("u") == 0 && groups.owns("o1") == 1)
        try groups.leave("1", "u", &effects)
        #expect(groups.groups(of: "u").map(\.id) == ["0", "2"])
        if let group = groups["0"] { groups.dismiss(group, &effects) }
        #expect(groups.joins("u") == 1 && groups.owns("o0") == 0 && groups["0"] == nil)
    }
}

/// Alice's class, with Bob and Carol, each with one device; Alice has a second one.
private struct ClassScenario {
    var exchange = ExchangeScenario()
    let alice: ConnectionID
    let second: ConnectionID
    let bob: ConnectionID
    let carol: ConnectionID

    init() {
        alice = exchange.device("a", of: "alice")
        second = exchange.device("a2", of: "alice")
        bob = exchange.device("b", of: "bob")
        carol = exchange.device("c", of: "carol")
        _ = exchange.request(.groupCreate(GroupCreate(group: "class", members: ["bob", "carol"])), from: alice)
        _ = heard()
    }

    mutating func ask(
        _ to: [UserID], data: JSONValue? = nil, from: ConnectionID? = nil, ttl: Double = 30, key: IdempotencyKey = "k"
    ) -> Result<ClientResponse, RPCError> {
        let send = InviteSend(
            to: to, group: "class", data: data, ttl: ttl, timeoutPayload: "missed", idempotencyKey: key)
        return exchange.request(.inviteSend(send), from: from ?? alice)
    }

    mutating func invite(_ to: [UserID], data: JSONValue? = nil, ttl: Double = 30, key: IdempotencyKey = "k")
        -> InviteID
    {
        if case .success(.invite(let result)) = ask(to, data: data, ttl: ttl, key: key) { result.invite } else { "" }
    }

    /// What Alice, her second device, Bob and Carol have heard since last asked.
    mutating func heard() -> [[ExchangeEvent]] { [alice, second, bob, carol].map { exchange.events(of: $0) } }
}

@Suite struct GroupInviteTests {
    @Test("GRP-2: Every member hears the invite and each answer, and invitees says who is asked")
    func everybodyHears() {
        var group = ClassScenario()
        let invite = group.invite(["bob"], data: "speak")
        let received = ExchangeEvent.inviteReceived(
            InviteReceived(
                invite: invite, inviter: "alice", group: "class", invitees: ["bob"], data: "speak", ttlRemaining: 30))
        #expect(group.heard() == [[], [received], [received], [received]])
        _ = group.exchange.request(.inviteAccept(InviteAccept(invite: invite, data: "yes")), from: group.bob)
        let accepted = ExchangeEvent.inviteAccepted(
            InviteAnswered(invite: invite, invitee: "bob", device: "b", data: "yes"))
        let ended = ExchangeEvent.inviteEnded(InviteEnded(invite: invite))
        #expect(group.heard() == [[accepted, ended], [accepted], [], [accepted]])
        let hijack = InviteAccept(invite: invite)
        #expect(group.exchange.refusal(of: .inviteAccept(hijack), from: group.carol) == .notYours)
    }

    @Test("GRP-2: Members hear how an invite in their group ends, and only those who were asked get the missed call")
    func ends() {
        for cancels in [true, false] {
            var group = ClassScenario()
            let invite = group.invite(["bob"], ttl: 20)
            _ = group.heard()
            if cancels {
                _ = group.exchange.request(.inviteCancel(InviteCancel(invite: invite)), from: group.alice)
            } else {
                group.exchange.advance(by: .seconds(20))
            }
            let end: ExchangeEvent =
                cancels
                ? .inviteCancelled(InviteCancelled(invite: invite))
                : .inviteTimedOut(InviteTimedOut(invite: invite, invitees: ["bob"]))
            let missed = ExchangeEvent.inviteMissed(InviteMissed(invite: invite, payload: "missed"))
            let ended = ExchangeEvent.inviteEnded(InviteEnded(invite: invite))
            #expect(group.heard() == [cancels ? [ended] : [end, ended], [end], [end, missed], [end]])
        }
    }

    @Test("GRP-2: Only members ask in a group, and only members are asked")
    func membersOnly() {
        var group = ClassScenario()
        _ = group.exchange.request(.groupLeave(GroupLeave(group: "class")), from: group.carol)
        _ = group.heard()
        func code(_ result: Result<ClientResponse, RPCError>) -> RPCErrorCode? {
            if case .failure(let error) = result { error.known } else { nil }
        }
        #expect(code(group.ask(["bob"], from: group.carol)) == .unknownGroup)
        #expect(code(group.ask(["bob", "carol"])) == .notAllowed)
        let elsewhere = InviteSend(to: ["bob"], group: "no such", ttl: 1, idempotencyKey: "k")
        #expect(group.exchange.refusal(of: .inviteSend(elsewhere), from: group.alice) == .unknownGroup)
        #expect(group.heard() == [[], [], [], []])
        #expect(code(group.ask(["bob"])) == nil)
        #expect(group.heard()[3].isEmpty)
    }

    @Test(
        "GRP-3: Hands are raised with group invites alone: one asks all, those who accept are seen, a second asks one")
    func handRaising() {
        var group = ClassScenario()
        let raise = group.invite(["bob", "carol"], data: "raise hand", key: "1")
        let asked = group.heard()
        for (index, user) in [(2, "bob"), (3, "carol")] as [(Int, UserID)] {
            guard case .inviteReceived(let received)? = asked[index].first else { return #expect(Bool(false)) }
            #expect(received.invitees.contains(user) && received.data == "raise hand")
        }
        _ = group.exchange.request(.inviteAccept(InviteAccept(invite: raise, data: "raise hand")), from: group.carol)
        _ = group.exchange.request(.inviteReject(InviteReject(invite: raise)), from: group.bob)
        let hands = group.heard().map { events in
            events.compactMap { if case .inviteAccepted(let answer) = $0 { answer.invitee } else { nil } }
        }
        #expect(hands == [["carol"], ["carol"], ["carol"], []], "all but who raised it see the hand")

        let speak = group.invite(["carol"], data: "speak", key: "2")
        for events in group.heard().dropFirst() {
            guard case .inviteReceived(let received)? = events.first else { return #expect(Bool(false)) }
            #expect(received.invitees == ["carol"] && received.data == "speak")
        }
        #expect(group.exchange.refusal(of: .inviteAccept(InviteAccept(invite: speak)), from: group.carol) == nil)
        #expect(group.heard()[2].count == 1, "Bob sees who speaks")
    }

    @Test("INV-14: Of group invites a cold start gets those of the last 30 seconds, a warm start all")
    func coldAndWarm() {
        var group = ClassScenario()
        let old = group.invite(["bob"], ttl: 300, key: "old")
        let direct = group.exchange.invite("bob", from: group.alice, ttl: 300, key: "direct")
        group.exchange.advance(by: .seconds(31))
        let new = group.invite(["bob"], ttl: 300, key: "new")
        _ = group.heard()
        func told(_ device: ConnectionID, as id: DeviceID, _ start: DeviceRegister.Start?) -> [InviteID] {
            let register = DeviceRegister(device: DeviceDescription(id: id, name: id.text), start: start)
            _ = group.exchange.request(.deviceRegister(register), from: device)
            return group.exchange.events(of: device).compactMap {
                if case .inviteReceived(let received) = $0 { received.invite } else { nil }
            }
        }
        let bob = group.exchange.device("b2", of: "bob", registers: false)
        #expect(told(bob, as: "b2", nil) == [direct, new])
        #expect(told(bob, as: "b2", .warm) == [old, direct, new])
        #expect(told(bob, as: "b2", .cold) == [direct, new])
        let carol = group.exchange.device("c2", of: "carol", registers: false)
        #expect(
            told(carol, as: "c2", .warm) == [old, new], "a member looks on, and is not told of what is Bob's alone")
        _ = group.exchange.request(.inviteAccept(InviteAccept(invite: new)), from: group.bob)
        #expect(told(bob, as: "b2", .warm) == [old, direct], "what the user has answered is done")
        #expect(told(carol, as: "c2", .warm) == [old])
    }
}
