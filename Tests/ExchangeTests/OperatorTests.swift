@testable import ExchangeCore
import Core
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing

private func accept(_ invite: InviteID) -> ClientRequest { .inviteAccept(InviteAccept(invite: invite, data: nil)) }

@Suite("What an operator has the exchange do") struct OperatorTests {
    @Test("INV-7: An invite that the operator ends is a timeout to its inviter and to every device that rings")
    func endInvite() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        let invite = scenario.invite("bob", from: alice, ttl: 0)
        for bob in bobs { _ = scenario.events(of: bob) }
        #expect(scenario.order(.endInvite(invite)) == .done(ended: 1))
        let end = InviteTimedOut(invite: invite, invitees: ["bob"])
        for bob in bobs { #expect(scenario.events(of: bob) == [.inviteTimedOut(end)]) }
        #expect(scenario.events(of: alice) == [.inviteTimedOut(end), .inviteEnded(InviteEnded(invite: invite))])
    }

    @Test("The same events come when an invite's time has run out")
    func sameAsTimeout() {
        func events(_ end: (inout ExchangeScenario, InviteID) -> Void) -> [[ExchangeEvent]] {
            var scenario = ExchangeScenario()
            let alice = scenario.device("a", of: "alice")
            let bob = scenario.device("b", of: "bob")
            let invite = scenario.invite("bob", from: alice, ttl: 5, timeoutPayload: "missed")
            _ = scenario.events(of: bob)
            end(&scenario, invite)
            return [scenario.events(of: alice), scenario.events(of: bob)]
        }
        let ended = events { scenario, invite in _ = scenario.order(.endInvite(invite)) }
        #expect(ended == events { scenario, _ in scenario.advance(by: .seconds(6)) })
        #expect(ended.allSatisfy { !$0.isEmpty })
    }

    @Test("An order that is repeated changes nothing, and says so")
    func repeats() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice)
        #expect(scenario.order(.endInvite(invite)) == .done(ended: 1))
        _ = (scenario.events(of: alice), scenario.events(of: bob))
        let before = scenario.changes.count
        #expect(scenario.order(.endInvite(invite)) == .refused(.inviteEnded))
        #expect(scenario.order(.endInvite("other")) == .refused(.unknownInvite))
        #expect(scenario.order(.endCall(invite, with: nil)) == .refused(.unknownCall))
        #expect(scenario.changes.count == before)
        #expect(scenario.events(of: alice).isEmpty && scenario.events(of: bob).isEmpty)
    }

    @Test(
        "INV-5: Of the operator and a device that accepts at the same instant the first wins, and there is one outcome")
    func againstAccept() {
        for operatorIsFirst in [true, false] {
            var scenario = ExchangeScenario()
            let alice = scenario.device("a", of: "alice")
            let bob = scenario.device("b", of: "bob")
            let invite = scenario.invite("bob", from: alice)
            if operatorIsFirst {
                #expect(scenario.order(.endInvite(invite)) == .done(ended: 1))
                #expect(scenario.refusal(of: accept(invite), from: bob) == .inviteTimedOut)
            } else {
                #expect(scenario.refusal(of: accept(invite), from: bob) == nil)
                #expect(scenario.order(.endInvite(invite)) == .refused(.inviteEnded))
            }
            #expect(scenario.core.openCalls == (operatorIsFirst ? 0 : 1))
            let ends = scenario.events(of: alice).filter { if case .inviteEnded = $0 { true } else { false } }
            #expect(ends.count == 1)
        }
    }

    @Test("CALL-5: A call that the operator ends is a hang-up to both devices, and its record says who ended it")
    func endCall() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice)
        _ = scenario.request(accept(invite), from: bob)
        scenario.advance(by: .seconds(3))
        _ = (scenario.events(of: alice), scenario.events(of: bob))
        #expect(scenario.order(.endCall(invite, with: nil)) == .done(ended: 1))
        func end(from user: UserID) -> ExchangeEvent {
            .callEnded(CallEnded(invite: invite, reason: "disconnected", durationMilliseconds: 3_000, from: user))
        }
        #expect(scenario.events(of: alice) == [end(from: "bob")])
        #expect(scenario.events(of: bob) == [end(from: "alice")])
        let reasons = scenario.changes.compactMap { change in
            if case .record(let step) = change, case .ended(let reason, 3_000) = step.kind { reason } else { nil }
        }
        #expect(reasons == ["operator"])
        #expect(scenario.core.openCalls == 0)
        #expect(
            scenario.refusal(
                of: .callEnd(CallEnd(invite: invite, reason: "completed", durationMilliseconds: 1)), from: bob)
                == .unknownCall)
    }

    @Test("Of an invite that has become several calls the operator must name one, and only that one ends")
    func severalCalls() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let carol = scenario.device("c", of: "carol")
        let params = InviteSend(to: ["bob", "carol"], ttl: 30, idempotencyKey: "key")
        guard case .success(.invite(let sent)) = scenario.request(.inviteSend(params), from: alice) else {
            Issue.record("the invite is refused")
            return
        }
        for device in [bob, carol] { _ = scenario.request(accept(sent.invite), from: device) }
        #expect(scenario.order(.endCall(sent.invite, with: nil)) == .refused(.severalCalls))
        #expect(scenario.order(.endCall(sent.invite, with: "carol")) == .done(ended: 1))
        #expect(scenario.core.openCalls == 1)
        #expect(scenario.order(.endCall(sent.invite, with: "carol")) == .refused(.unknownCall))
    }

    @Test("AUTH-9: A user that the operator logs out loses all sessions, their calls, and the tokens")
    func logOut() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        let invite = scenario.invite("bob", from: alice)
        _ = scenario.request(accept(invite), from: bobs[0])
        _ = scenario.events(of: alice)
        #expect(scenario.order(.logOut("bob")) == .done(ended: 2))
        for bob in bobs { #expect(scenario.closed[bob] == .loggedOut) }
        let ends = scenario.events(of: alice).filter { if case .callEnded = $0 { true } else { false } }
        #expect(ends.count == 1)
        let again = scenario.connect()
        let start = SessionStart(token: Redacted("token of bob"), device: DeviceDescription(id: "b1", name: "b1"))
        #expect(scenario.refusal(of: .sessionStart(start), from: again) == .tokenRevoked)
        #expect(scenario.order(.logOut("bob")) == .done(ended: 0))
        #expect(scenario.order(.logOut("nobody")) == .refused(.unknownUser))
    }

    @Test("The session of one device ends, and the user's other devices stay")
    func endSession() {
        var scenario = ExchangeScenario()
        let first = scenario.device("b1", of: "bob")
        let second = scenario.device("b2", of: "bob")
        #expect(scenario.order(.endSession("bob", "b1")) == .done(ended: 1))
        #expect(scenario.closed[first] == .sessionEnded && scenario.closed[second] == nil)
        #expect(scenario.session(on: second) != nil)
        #expect(scenario.order(.endSession("bob", "b1")) == .refused(.noSession))
    }

    @Test("CONN-7: A user that the operator takes out of a room learns of it as the others do, and may join again")
    func removeFromRoom() throws {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        for device in [alice] + bobs { _ = scenario.request(.roomJoin(RoomJoin(room: "lobby")), from: device) }
        for device in [alice] + bobs { _ = scenario.events(of: device) }
        let names = try bobs.map { try #require(scenario.session(on: $0)?.name) }
        func left(_ name: ConnectionName) -> ExchangeEvent {
            .connectionDestroyed(ConnectionDestroyed(room: "lobby", connection: name, reason: "removed"))
        }
        #expect(scenario.order(.removeFromRoom("lobby", "bob", names[1])) == .done(ended: 1))
        for device in [alice] + bobs { #expect(scenario.events(of: device) == [left(names[1])]) }
        #expect(scenario.core.rooms.occupants(of: "lobby").map(\.endpoint.device) == ["a", "b1"])
        #expect(scenario.session(on: bobs[1]) != nil && scenario.closed.isEmpty)
        let signal = RoomSignal(room: "lobby", type: "chat", data: "hello")
        #expect(scenario.refusal(of: .roomSignal(signal), from: bobs[1]) == .unknownRoom)
        _ = scenario.request(.roomJoin(RoomJoin(room: "lobby")), from: bobs[1])
        for device in [alice] + bobs { _ = scenario.events(of: device) }
        #expect(scenario.order(.removeFromRoom("lobby", "bob", nil)) == .done(ended: 2))
        #expect(scenario.events(of: alice) == [left(names[0]), left(names[1])])
        #expect(scenario.events(of: bobs[0]) == [left(names[0])], "it is in the room no more")
        #expect(scenario.events(of: bobs[1]) == [left(names[0]), left(names[1])])
        let before = scenario.changes.count
        #expect(scenario.order(.removeFromRoom("lobby", "bob", nil)) == .refused(.noMember))
        #expect(scenario.order(.removeFromRoom("lobby", "alice", names[0])) == .refused(.noMember))
        #expect(scenario.order(.removeFromRoom("attic", "bob", nil)) == .refused(.unknownRoom))
        #expect(scenario.changes.count == before)
    }

    @Test(
        "A participant whose connection is lost is taken out of a room, learns of it when it resumes, and is not back")
    func removeTheMissing() throws {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        for device in [alice, bob] { _ = scenario.request(.roomJoin(RoomJoin(room: "lobby")), from: device) }
        let point = try #require(scenario.resumePoint(of: bob))
        scenario.feed(.disconnected(bob))
        #expect(scenario.order(.removeFromRoom("lobby", "bob", nil)) == .done(ended: 1))
        let again = scenario.connect()
        let start = SessionStart(
            token: Redacted("token of bob"), device: DeviceDescription(id: "b", name: "b"), resume: point)
        _ = scenario.request(.sessionStart(start), from: again)
        let ends = scenario.events(of: again).filter { if case .connectionDestroyed = $0 { true } else { false } }
        #expect(ends.count == 1)
        #expect(scenario.core.rooms.occupants(of: "lobby").map(\.endpoint.user) == ["alice"])
        // The same is on disk.
        let restored = ExchangeScenario(restoring: scenario.saved, at: scenario.timeline.now)
        #expect(restored.core.rooms.occupants(of: "lobby").map(\.endpoint.user) == ["alice"])
    }

    @Test("GRP-1: A member that the operator takes out of a group has left it, and the owner stays")
    func removeFromGroup() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        _ = scenario.request(.groupCreate(GroupCreate(group: "team", members: ["bob", "carol"])), from: alice)
        for device in [alice, bob] { _ = scenario.events(of: device) }
        #expect(scenario.order(.removeFromGroup("team", "bob")) == .done(ended: 1))
        let left = ExchangeEvent.groupChanged(GroupChanged(group: "team", change: .left, user: "bob"))
        for device in [alice, bob] { #expect(scenario.events(of: device) == [left]) }
        #expect(scenario.core.groups["team"]?.members == ["alice", "carol"])
        #expect(scenario.refusal(of: .groupMembers(GroupMembers(group: "team")), from: bob) == .unknownGroup)
        let before = scenario.changes.count
        #expect(scenario.order(.removeFromGroup("team", "bob")) == .refused(.noMember))
        #expect(scenario.order(.removeFromGroup("team", "alice")) == .refused(.isOwner))
        #expect(scenario.order(.removeFromGroup("teams", "bob")) == .refused(.unknownGroup))
        #expect(scenario.changes.count == before)
    }

    @Test("CONN-12: Devices of one user are asked to move, or one of them; the others are not, and calls continue")
    func move() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bobs = [scenario.device("b1", of: "bob"), scenario.device("b2", of: "bob")]
        let invite = scenario.invite("bob", from: alice)
        _ = scenario.request(accept(invite), from: bobs[0])
        for device in [alice] + bobs { _ = scenario.events(of: device) }
        let url = "wss://other.example.org/v1/rtc"
        #expect(scenario.order(.move("bob", "b1", within: .seconds(5), to: url)) == .done(ended: 1))
        let asked = ExchangeEvent.moveRequested(MoveRequested(withinSeconds: 5, webSocketURL: url))
        #expect(scenario.events(of: bobs[0]) == [asked])
        #expect(scenario.events(of: bobs[1]).isEmpty && scenario.events(of: alice).isEmpty)
        #expect(scenario.order(.move("bob", nil, within: .zero, to: nil)) == .done(ended: 2))
        for bob in bobs {
            #expect(scenario.events(of: bob) == [.moveRequested(MoveRequested(withinSeconds: 0))])
        }
        #expect(scenario.core.openCalls == 1 && scenario.closed.isEmpty)
        #expect(scenario.order(.move("bob", "b3", within: .zero, to: nil)) == .refused(.noSession))
        #expect(scenario.order(.move("carol", nil, within: .zero, to: nil)) == .refused(.noSession))
        #expect(scenario.order(.move("nobody", nil, within: .zero, to: nil)) == .refused(.unknownUser))
    }

    @Test("The lists have users with devices, open invites, calls, rooms and groups, and no secret")
    func lists() throws {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: alice, data: ["secret": "data"])
        _ = scenario.request(.roomJoin(RoomJoin(room: "lobby")), from: alice)
        _ = scenario.request(
            .groupCreate(GroupCreate(group: "team", name: "Team", members: ["alice", "bob"])), from: alice)
        scenario.advance(by: .seconds(2))
        let now = scenario.timeline.now
        var core = scenario.core
        let users = core.users(after: nil, atMost: 10)
        #expect(users.entries.map(\.id) == ["alice", "bob", "carol"] && users.next == nil)
        #expect(users.entries[1].devices.map(\.id) == ["b"])
        #expect(users.entries[1].devices.allSatisfy { $0.isConnected && $0.isRegistered && !$0.isStream })
        let invites = core.openInvites(after: nil, atMost: 10, at: now)
        #expect(invites.entries.map(\.id) == [invite] && invites.next == nil)
        #expect(invites.entries[0].pending == ["bob"] && invites.entries[0].age == .seconds(2))
        #expect(invites.entries[0].remaining == .seconds(28))
        #expect(core.allRooms(after: nil, atMost: 10).entries.map(\.name) == ["lobby"])
        let groups = core.allGroups(after: nil, atMost: 10).entries
        #expect(groups.map(\.id) == ["team"] && groups[0].members == ["alice", "bob"])
        #expect(core.runningCalls(after: nil, atMost: 10, at: now).entries.isEmpty)
        #expect(core.countOpenInvites() == 1 && core.countUsers() == 3)
        _ = scenario.request(accept(invite), from: bob)
        core = scenario.core
        let calls = core.runningCalls(after: nil, atMost: 10, at: now).entries
        #expect(calls.map(\.invite) == [invite] && calls[0].inviter.user == "alice" && calls[0].invitee.user == "bob")
        #expect(core.countOpenInvites() == 0)
        scenario.feed(.disconnected(bob))
        core = scenario.core
        #expect(core.users(after: "alice", atMost: 1).entries[0].devices.allSatisfy { !$0.isConnected })
    }

    @Test("Pages of one entry each have every entry once", arguments: [1, 2, 3])
    func pages(_ size: Int) throws {
        var scenario = ExchangeScenario(users: (0..<7).map { Account(id: UserID(ours: "user\($0)")) })
        let devices = (0..<7).map { scenario.device(DeviceID(ours: "d"), of: UserID(ours: "user\($0)")) }
        var sent: [InviteID] = []
        for (number, device) in devices.enumerated() where number % 2 == 0 {
            for other in [1, 3] {
                sent.append(
                    scenario.invite(UserID(ours: "user\(other)"), from: device, key: IdempotencyKey(ours: "k\(other)")))
            }
        }
        for number in 0..<5 {
            _ = scenario.request(.roomJoin(RoomJoin(room: RoomName(ours: "room\(number)"))), from: devices[0])
        }
        var core = scenario.core
        let invites = try all { core.openInvites(after: $0.flatMap { OperatorCursor($0) }, atMost: size, at: .zero) }
        #expect(invites.map(\.id) == sent)
        let users = try all { core.users(after: $0, atMost: size) }
        #expect(users.map(\.id.text) == (0..<7).map { "user\($0)" })
        let rooms = try all { core.allRooms(after: $0, atMost: size) }
        #expect(rooms.map(\.name.text) == (0..<5).map { "room\($0)" })
        for (invite, device) in zip(sent, [1, 3, 1, 3, 1, 3, 1, 3]) {
            _ = scenario.request(accept(invite), from: devices[device])
        }
        core = scenario.core
        let calls = try all { core.runningCalls(after: $0.flatMap { OperatorCursor($0) }, atMost: size, at: .zero) }
        #expect(calls.map(\.invite) == sent)
    }

    /// All entries of a list, page by page.
    private func all<Entry>(_ page: (String?) throws -> OperatorPage<Entry>) throws -> [Entry] {
        var (entries, after): ([Entry], String?) = ([], nil)
        for _ in 0..<50 {
            let found = try page(after)
            entries += found.entries
            guard let next = found.next else { return entries }
            after = next
        }
        throw RPCError(.internalError, "the list has no end")
    }

    @Test("A page of users ends when it has a thousand devices, and the pages have each user once")
    func manyDevices() throws {
        var settings = ExchangeCore.Settings()
        settings.sessionsPerUser = 64
        let users = (0..<40).map { Account(id: UserID(ours: "user\(10 + $0)")) }
        var scenario = ExchangeScenario(settings: settings, users: users)
        for user in users { for number in 0..<60 { _ = scenario.device(DeviceID(ours: "d\(number)"), of: user.id) } }
        var core = scenario.core
        let first = core.users(after: nil, atMost: 100)
        #expect(first.entries.count == 17 && first.next == "user26")
        let entries = try all { core.users(after: $0, atMost: 100) }
        #expect(entries.map(\.id) == users.map(\.id) && entries.allSatisfy { $0.devices.count == 60 })
    }

    @Test("Groups are listed by owner, each once, also of owners who are in other groups", arguments: [1, 2, 7])
    func groupPages(_ size: Int) throws {
        let users = (0..<4).map { Account(id: UserID(ours: "user\($0)")) }
        var scenario = ExchangeScenario(users: users)
        let devices = users.map { scenario.device("d", of: $0.id) }
        var ids: [[String]] = [[], [], [], []]
        for number in [5, 1, 4, 2, 3] {
            for (owner, device) in devices.enumerated() where owner != 2 {
                let id = GroupID(ours: "g\(number)-\(owner)")
                let members = users.map(\.id)
                _ = scenario.request(.groupCreate(GroupCreate(group: id, members: members)), from: device)
                ids[owner].append(id.text)
            }
        }
        _ = scenario.request(.groupDismiss(GroupDismiss(group: "g4-1")), from: devices[1])
        ids[1].removeAll { $0 == "g4-1" }
        var core = scenario.core
        let entries = try all { core.allGroups(after: $0.flatMap { OperatorCursor($0) }, atMost: size) }
        #expect(entries.map(\.id.text) == ids.flatMap { $0.sorted() })
        var restored = ExchangeScenario(restoring: scenario.saved, at: scenario.timeline.now, users: users).core
        let again = try all { restored.allGroups(after: $0.flatMap { OperatorCursor($0) }, atMost: size) }
        #expect(again == entries)
    }

    @Test("A page of users without invites looks at a thousand of them, and names where it stopped")
    func bounded() throws {
        let users = (0..<2_500).map { Account(id: UserID(ours: "user\(10_000 + $0)")) }
        var core = ExchangeCore(accounts: users, run: 1)
        let first = core.openInvites(after: nil, atMost: 100, at: .zero)
        #expect(first.entries.isEmpty)
        let text = try #require(first.next)
        let next = try #require(OperatorCursor(text))
        #expect(next.user == "user10999")
        let last = core.openInvites(after: OperatorCursor(user: "user11999", position: nil), atMost: 100, at: .zero)
        #expect(last.next == nil)
    }

    @Test("What is no cursor is refused", arguments: ["", "x", "%%", "YQ", "YWxpY2UKMTAKeA", "CjEK"])
    func noCursor(_ text: String) { #expect(OperatorCursor(text) == nil) }

    @Test("WHIP: A stream whose invite the operator ends is answered that no device has answered, and is gone")
    func stream() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (ticket, id) = try scenario.offer()
        let heard = scenario.invite(at: bob)
        let invite = try #require(heard)
        #expect(scenario.order(.endInvite(invite.invite)) == .done(ended: 1))
        guard case .failed(.noAnswer)? = scenario.replies[ticket] else {
            Issue.record("the client is answered \(String(describing: scenario.replies[ticket]))")
            return
        }
        #expect(scenario.sessions[id] == nil)
    }

    @Test("A user that the operator logs out loses streams, which no login has opened")
    func streamOfLogOut() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        _ = try scenario.stream(to: bob)
        #expect(scenario.order(.logOut("alice")) == .done(ended: 1))
        #expect(Array(scenario.exchange.closed.values) == [.loggedOut])
        let ends = scenario.events(of: bob).filter { if case .callEnded = $0 { true } else { false } }
        #expect(ends.count == 1)
    }

    @Test("WHEP: A stream whose call the operator ends has ended")
    func streamOfCall() throws {
        var scenario = StreamScenario()
        let bob = scenario.device("b", of: "bob")
        let (id, invite) = try scenario.stream(to: bob)
        #expect(scenario.sessions[id] != nil)
        #expect(scenario.order(.endCall(invite, with: nil)) == .done(ended: 1))
        #expect(scenario.sessions[id] == nil)
    }
}
