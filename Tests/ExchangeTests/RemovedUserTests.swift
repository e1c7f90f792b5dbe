@testable import ExchangeCore
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing

@Suite struct RemovedUserTests {
    /// An invite to Bob and Carol.
    private static func ask(
        _ scenario: inout ExchangeScenario, _ alice: ConnectionID, _ key: IdempotencyKey
    ) -> InviteID {
        let send = InviteSend(to: ["bob", "carol"], data: "secret", ttl: 0, idempotencyKey: key)
        guard case .success(.invite(let sent)) = scenario.request(.inviteSend(send), from: alice) else { return "none" }
        return sent.invite
    }

    @Test("Of a removed user no event stays, so that who is given the name finds none")
    func removed() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.device("b", of: "bob")
        for number in 0..<3 { _ = scenario.invite("bob", from: alice, data: "old", key: "\(number)") }
        scenario.feed(.accountsChanged(ExchangeScenario.users.filter { $0.id != "bob" }))
        #expect(!scenario.saved.events.contains { $0.principal == .account("bob") })
        scenario.feed(.accountsChanged(ExchangeScenario.users))
        _ = scenario.invite("bob", from: alice, data: "new", key: "new")
        let stored = scenario.saved.events.filter { $0.principal == .account("bob") }
        #expect(stored.map(\.sequence) == [1])
    }

    @Test("Open invites of a removed user, sent and received, leave no event for the next user with the name")
    func openInvites() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        _ = scenario.invite("bob", from: alice, ttl: 5, key: "received")
        _ = scenario.invite("alice", from: bob, ttl: 5, key: "sent")
        scenario.feed(.accountsChanged(ExchangeScenario.users.filter { $0.id != "bob" }))
        #expect(scenario.saved.events.allSatisfy { $0.principal != .account("bob") })
        scenario.advance(by: .seconds(10))
        #expect(scenario.saved.events.allSatisfy { $0.principal != .account("bob") })
        #expect(scenario.core.streams[.account("bob")] == nil)
        #expect(scenario.saved.events.contains { $0.principal == .account("alice") })
    }

    @Test("Invites to a removed user end for it, and the next user with the name gets none of them")
    func invitesToRemovedUser() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let alone = scenario.invite("bob", from: alice, data: "secret", ttl: 0, key: "alone")
        let both = Self.ask(&scenario, alice, "both")
        let answered = Self.ask(&scenario, alice, "answered")
        _ = scenario.request(.inviteAccept(InviteAccept(invite: answered)), from: bob)
        _ = scenario.events(of: alice)
        scenario.feed(.accountsChanged(ExchangeScenario.users.filter { $0.id != "bob" }))
        let heard = scenario.events(of: alice)
        for invite in [alone, both] {
            #expect(heard.contains(.inviteTimedOut(InviteTimedOut(invite: invite, invitees: ["bob"]))))
        }
        #expect(heard.contains(.inviteEnded(InviteEnded(invite: alone))))
        #expect(!heard.contains(.inviteEnded(InviteEnded(invite: both))), "Carol may still answer")
        #expect(scenario.core.invites.places(with: "bob").count == 0)

        scenario.feed(.accountsChanged(ExchangeScenario.users))
        for next in [scenario, scenario.restarted()] {
            #expect(next.core.invites.received(by: "bob").isEmpty)
            #expect(next.core.invites.received(by: "carol").count == 2)
        }
    }

    @Test("A removed user is in no group any more, and its own are dismissed, also if it was removed during a restart")
    func groups() {
        for isRestarted in [false, true] {
            var scenario = ExchangeScenario()
            let alice = scenario.device("a", of: "alice")
            let bob = scenario.device("b", of: "bob")
            _ = scenario.request(.groupCreate(GroupCreate(group: "hers", members: ["bob"])), from: alice)
            _ = scenario.request(.groupCreate(GroupCreate(group: "his", members: ["alice"])), from: bob)
            let others = ExchangeScenario.users.filter { $0.id != "bob" }
            if isRestarted {
                scenario = scenario.restarted(after: .seconds(1), users: others)
            } else {
                scenario.feed(.accountsChanged(others))
            }
            #expect(scenario.core.groups["hers"]?.members == ["alice"])
            #expect(scenario.core.groups["his"] == nil)
            #expect(scenario.core.streams[.account("bob")] == nil)
        }
    }

    @Test(
        "Calls of a removed user end, a disconnected device's too, and the next user with the name is in none of them"
    )
    func calls() {
        for isDown in [false, true] {
            var scenario = ExchangeScenario()
            let alice = scenario.device("a", of: "alice")
            let bob = scenario.device("b", of: "bob")
            let invite = scenario.invite("bob", from: alice)
            _ = scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
            scenario.feed(.disconnected(bob))
            _ = scenario.events(of: alice)
            let others = ExchangeScenario.users.filter { $0.id != "bob" }
            if isDown {
                scenario = scenario.restarted(after: .seconds(1), users: others)
                scenario.advance(by: .milliseconds(1))
            } else {
                scenario.feed(.accountsChanged(others))
                let ends = scenario.events(of: alice).filter { if case .callEnded = $0 { true } else { false } }
                #expect(ends.count == 1)
            }
            #expect(scenario.core.invites.calls.count == 0)
            #expect(scenario.core.streams[.account("bob")] == nil)
        }
    }

    @Test(
        "INV-1: The next user with a removed user's name has its idempotency keys free, also if it was removed during a restart",
        arguments: [false, true])
    func idempotencyKeys(isDown: Bool) {
        var scenario = ExchangeScenario()
        let bob = scenario.device("b", of: "bob")
        let ended = scenario.invite("alice", from: bob, key: "ended")
        _ = scenario.request(.inviteCancel(InviteCancel(invite: ended)), from: bob)
        let open = scenario.invite("alice", from: bob, key: "open")
        let others = ExchangeScenario.users.filter { $0.id != "bob" }
        if isDown {
            let changes = scenario.changes
            scenario = ExchangeScenario(
                restoring: scenario.saved, at: scenario.timeline.now, users: others, after: changes)
            scenario.advance(by: .milliseconds(1))
        } else {
            scenario.feed(.accountsChanged(others))
        }
        let later = ExchangeScenario(
            restoring: scenario.saved, at: scenario.timeline.now, after: scenario.changes, run: 3)
        scenario.feed(.accountsChanged(ExchangeScenario.users))
        for var next in [scenario, later] {
            let token = SecretDigest(of: "token of the other bob")
            next.feed(.tokenIssued(token, Grant(user: "bob", isAnonymous: false)))
            let other = next.connect()
            let start = SessionStart(
                token: Redacted("token of the other bob"), device: DeviceDescription(id: "b", name: "b"))
            #expect(next.refusal(of: .sessionStart(start), from: other) == nil)
            let alice = next.device("a", of: "alice")
            for (key, before) in [("ended", ended), ("open", open)] as [(IdempotencyKey, InviteID)] {
                let own = next.invite("alice", from: other, key: key)
                #expect(own != before && own != "none")
                #expect(next.invite("alice", from: other, key: key) == own)
                let heard = next.events(of: alice).compactMap { event in
                    if case .inviteReceived(let invite) = event { invite.invite } else { nil }
                }
                #expect(heard == [own])
            }
        }
    }

    @Test(
        "AUTH-12, GRP-1: A user with a removed one's name inherits nothing, also if the exchange saw neither being removed nor added",
        arguments: [false, true])
    func namesake(isDown: Bool) {
        func users(bobAdded added: Int64) -> [Account] {
            ExchangeScenario.users.map { user in
                var user = user
                if user.id == "bob" { user.added = added }
                return user
            }
        }
        var scenario = ExchangeScenario(users: users(bobAdded: 1))
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let description = DeviceDescription(id: "b", name: "b")
        let target = DeviceRegister.PushTarget(kind: "apns", token: Redacted("secret"))
        _ = scenario.request(.deviceRegister(DeviceRegister(device: description, push: [target])), from: bob)
        #expect(scenario.refusal(of: .groupCreate(GroupCreate(group: "hers", members: ["bob"])), from: alice) == nil)
        #expect(scenario.refusal(of: .groupCreate(GroupCreate(group: "his", members: ["alice"])), from: bob) == nil)
        _ = scenario.invite("bob", from: alice, ttl: 0)
        _ = scenario.invite("alice", from: bob, ttl: 0)
        #expect(scenario.saved.added == ["bob": 1])
        // The same once more changes nothing.
        scenario.feed(.accountsChanged(users(bobAdded: 1)))
        #expect(scenario.core.groups["his"] != nil)
        if isDown {
            scenario = ExchangeScenario(
                restoring: scenario.saved, at: scenario.timeline.now, users: users(bobAdded: 2), after: scenario.changes
            )
            scenario.feed(.timer)
        } else {
            scenario.feed(.accountsChanged(users(bobAdded: 2)))
        }
        #expect(scenario.core.accounts.account(id: "bob")?.added == 2)
        #expect(scenario.core.groups["hers"]?.members == ["alice"] && scenario.core.groups["his"] == nil)
        #expect(scenario.core.invites.received(by: "bob").isEmpty && scenario.core.invites.sent(by: "bob").isEmpty)
        #expect(scenario.core.streams[.account("bob")] == nil)
        let old = SessionStart(token: Redacted("token of bob"), device: description)
        #expect(scenario.refusal(of: .sessionStart(old), from: scenario.connect()) != nil)
        let saved = scenario.saved
        #expect(saved.added == ["bob": 2])
        #expect(!saved.pushTargets.contains { $0.user == "bob" } && saved.groups.map(\.members) == [["alice"]])
        #expect(!saved.acquaintances.contains { $0.owner == "bob" || $0.user == "bob" })
        // The next start finds the same user, and no login of the one before.
        var next = ExchangeScenario(restoring: saved, at: scenario.timeline.now, users: users(bobAdded: 2), run: 3)
        #expect(next.core.accounts.account(id: "bob") != nil)
        next.feed(.timer)
        #expect(next.core.groups["hers"] != nil)
        #expect(next.refusal(of: .sessionStart(old), from: next.connect()) != nil)
    }

    @Test("GRP-2: The owner of a new group with a dismissed one's name gets none of the old invites")
    func dismissedGroup() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        _ = scenario.request(.groupCreate(GroupCreate(group: "class", members: ["bob"])), from: alice)
        let send = InviteSend(to: ["bob"], group: "class", data: "secret", ttl: 0, idempotencyKey: "k")
        guard case .success(.invite(let sent)) = scenario.request(.inviteSend(send), from: alice) else {
            Issue.record("no invite")
            return
        }
        _ = scenario.request(.groupDismiss(GroupDismiss(group: "class")), from: alice)
        #expect(scenario.core.invites.places(in: "class").count == 0)
        for isRestarted in [false, true] {
            var next = isRestarted ? scenario.restarted() : scenario
            let carol = next.device("c", of: "carol")
            #expect(next.refusal(of: .groupCreate(GroupCreate(group: "class")), from: carol) == nil)
            _ = next.events(of: carol)
            let description = DeviceDescription(id: "c", name: "c")
            #expect(
                next.refusal(of: .deviceRegister(DeviceRegister(device: description, start: .warm)), from: carol) == nil
            )
            let there = isRestarted ? next.device("a", of: "alice") : alice
            let change = InviteModify(invite: sent.invite, data: "changed")
            #expect(next.refusal(of: .inviteModify(change), from: there) == nil)
            #expect(next.events(of: carol).isEmpty)
            guard !isRestarted else { continue }
            #expect(next.refusal(of: .inviteAccept(InviteAccept(invite: sent.invite)), from: bob) == nil)
        }
    }
}
