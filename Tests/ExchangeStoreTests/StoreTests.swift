import ExchangeCore
import ExchangeServer
import Foundation
import JSON
import SignalSupport
import SignalWire
import Testing
import Core

@Suite struct StoreTests {
    @Test("Everything that is written is read again by the next run as it was")
    func roundTrip() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let now = clock.now
        let digest = String(repeating: "ab", count: 32)
        let token = StoredToken(
            digest: digest, user: "bob", isAnonymous: false, expires: now.advanced(by: .seconds(60)), login: digest,
            isRefresh: true, application: "app", scope: nil, generation: 3, superseded: now, isRevoked: false,
            forgotten: now.advanced(by: .seconds(660)), epoch: 1_767_225_600)
        let signed = StoredToken(
            digest: String(repeating: "ef", count: 32), user: "visitor", isAnonymous: false,
            expires: now.advanced(by: .seconds(60)), login: String(repeating: "ef", count: 32), isRefresh: false,
            application: nil, scope: StoredPlace(room: "lobby", role: "moderator", data: "d"), superseded: nil,
            isRevoked: true, forgotten: now.advanced(by: .seconds(660)), epoch: nil)
        let logins = [
            StoredLogin(
                id: digest, family: String(repeating: "cd", count: 32), newest: 5, reached: 4, used: now),
            StoredLogin(id: signed.login, issuer: "school"),
        ]
        let sessions = [
            StoredSession(
                id: "s2", principal: Principal(user: "bob", kind: .visitor("ü")), device: "b", isRegistered: true,
                connection: "c1", scope: StoredPlace(room: "ü", role: "publisher", data: "d"), login: digest,
                places: [StoredPlace(room: "lobby")]),
            StoredSession(
                id: "s1", principal: Principal(user: "bob", kind: .guest(login: digest)), device: "b",
                isRegistered: false, connection: "c2", resumableUntil: now, isMissed: true),
            StoredSession(id: "s0", principal: .account("bob"), device: "b", isRegistered: false, connection: "c3"),
        ]
        let invite = Sample.invite(at: now)
        let call = StoredCall(
            invite: "invite-1", inviter: "alice", inviterDevice: "a", invitee: "bob", inviteeDevice: "b",
            acceptedAt: now)
        let groups = [
            StoredGroup(id: "z", name: "Z", owner: "bob", members: ["bob", "alice"]),
            StoredGroup(id: "a", owner: "bob", members: ["bob"]),
        ]
        let target = DeviceRegister.PushTarget(kind: "apns", token: Redacted("push"))
        let pushes = (["2", "1"] as [DeviceID]).map { StoredPushTargets(user: "bob", device: $0, targets: [target]) }
        let events = [
            Sample.event(3, at: now, for: .device("b")), Sample.event(4, at: now, for: .registered(except: nil)),
            Sample.event(5, at: now, for: .registered(except: "b")), Sample.event(6, at: now, for: .every),
            Sample.event(3, at: now, for: .device("b"), of: Principal(user: "bob", kind: .visitor("ü"))),
            Sample.event(3, at: now, for: .device("b"), of: Principal(user: "bob", kind: .guest(login: digest))),
        ]
        let changes: [Change] =
            [
                .token(token), .token(signed), .invite(invite), .call(call),
                .sequenceReserved(.account("carol"), upTo: 1_025),
            ]
            + logins.map(Change.login) + sessions.map(Change.session) + groups.map(Change.group)
            + pushes.map(Change.pushTargets)
            + events.map(Change.event)
        let first = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        try first.write(changes)
        try first.write(changes)
        first.close()

        let second = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        let saved = try second.read()
        #expect(saved.run == 2)
        #expect(saved.tokens == [token, signed])
        #expect(saved.logins == logins)
        #expect(saved.sessions == sessions)
        #expect(saved.invites == [invite])
        #expect(saved.calls == [call])
        #expect(saved.groups == groups)
        #expect(saved.pushTargets == pushes)
        #expect(Set(saved.events) == Set(events))
        #expect(saved.streams == [.init(principal: .account("carol"), reserved: 1_025, forgotten: 0)])

        try second.write([
            .tokenForgotten(digest: token.digest), .loginForgotten(token.login), .sessionForgotten("s1"),
            .sessionForgotten("s2"),
            .inviteForgotten("invite-1"), .callForgotten(invite: "invite-1", invitee: "bob"),
            .groupForgotten("z"), .pushTargets(StoredPushTargets(user: "bob", device: "2", targets: [])),
            .sessionForgotten("s0"), .eventsForgotten(.account("bob"), upTo: 4), .streamForgotten(.account("carol")),
            .streamForgotten(Principal(user: "bob", kind: .visitor("ü"))),
        ])
        let rest = try second.read()
        #expect(rest.tokens == [signed] && rest.logins == [logins[1]])
        #expect(rest.sessions.isEmpty && rest.invites.isEmpty && rest.calls.isEmpty)
        #expect(rest.groups == [groups[1]] && rest.pushTargets == [pushes[1]])
        #expect(rest.events == [events[2], events[3], events[5]])
        #expect(rest.streams == [.init(principal: .account("bob"), reserved: 0, forgotten: 4)])
        second.close()
    }

    @Test("GRP-2, INV-1, INV-15: An invite is read again as it was written last: without its data, group and key")
    func changedInvite() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database, clock: ScriptedClock().clock)
        defer { store.close() }
        var invite = Sample.invite(at: ScriptedClock().now)
        try store.write([.invite(invite)])
        invite.group = nil
        invite.data = nil
        invite.idempotencyKey = nil
        invite.invitees.removeLast()
        try store.write([.invite(invite)])
        #expect(try store.read().invites == [invite])
    }

    @Test("DEV-4: Pushes are read again as they were, and go when nothing need be known of them any more")
    func pushes() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { store.close() }
        var first = Sample.push("p1", at: clock.now)
        let second = Sample.push("p2", at: clock.now)
        try store.write([.push(first), .push(second)])
        first.attempts = 3
        first.due = clock.now.advanced(by: .seconds(2))
        first.isSettled = true
        try store.write([.push(first)])
        #expect(try store.read().pendingPushes == [first, second])
        try store.write([.pushForgotten("p1")])
        #expect(try store.read().pendingPushes == [second])
    }

    @Test("DEV-4: Dead letters are listed newest first, without tokens, and dropped after their time")
    func deadPushes() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { store.close() }
        let old = DeadPush(Sample.push("p1", at: clock.now), .refused, detail: "403")
        let new = DeadPush(Sample.push("p2", at: clock.now), .overflow, detail: nil)
        try store.write([.pushDied(old, at: clock.now)])
        clock.advance(by: .seconds(10))
        try store.write([.pushDied(new, at: clock.now)])
        let listed = try DeadPush.read(from: .file(folder.database))
        #expect(listed.map(\.push) == [new, old])
        #expect(listed.map(\.at.unixMilliseconds) == [1_700_000_010_000, 1_700_000_000_000])
        #expect(try DeadPush.read(from: .file(folder.database), limit: 1).map(\.push) == [new])
        #expect(try DeadPush.read(from: .file(folder.database), user: "carol").isEmpty)
        try store.write([.deadPushesPruned(before: clock.now.advanced(by: .seconds(-5)))])
        #expect(try DeadPush.read(from: .file(folder.database)).map(\.push) == [new])
    }

    @Test("Retention drops old events and records, and remembers up to which number events are gone")
    func retention() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { store.close() }
        func call(_ name: InviteID) -> Change {
            .record(
                CallStep(
                    invite: name, invitee: "bob", kind: .rang(inviter: "alice", inviterDevice: "a", group: nil),
                    at: clock.now))
        }
        try store.write([.event(Sample.event(1, at: clock.now, for: .device("b"))), call("old")])
        try store.write([.event(Sample.event(1, at: clock.now, for: .every, of: .account("carol")))])
        clock.advance(by: .seconds(100))
        try store.write([.event(Sample.event(2, at: clock.now, for: .device("b"))), call("new")])
        let limit = clock.now.advanced(by: .seconds(-50))
        try store.write([.pruned(eventsBefore: limit, recordsBefore: limit)])
        let saved = try store.read()
        #expect(saved.events.map(\.sequence) == [2])
        let streams: [Saved.Stream] = [
            .init(principal: .account("bob"), reserved: 0, forgotten: 0, outdated: [.device("b"): 1]),
            .init(principal: .account("carol"), reserved: 0, forgotten: 1),
        ]
        #expect(saved.streams.sorted { $0.principal.user < $1.principal.user } == streams)
        #expect(try CallDetailRecord.read(from: .file(folder.database)).map(\.invite) == ["new"])
    }

    @Test(
        "CALL-7: Call records have a limit for each caller and in all: the oldest are removed, and no user's push out another's"
    )
    func recordLimits() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        var limits = RecordLimits()
        (limits.perCaller, limits.total) = (20, 50)
        func step(_ name: InviteID, by caller: UserID) -> Change {
            let kind = CallStep.Kind.rang(inviter: caller, inviterDevice: "a", group: nil)
            return .record(CallStep(invite: name, invitee: "victim", kind: kind, at: clock.now))
        }
        func kept(by caller: UserID) throws -> [InviteID] {
            try CallDetailRecord.read(from: .file(folder.database)).filter { $0.inviter == caller }.map(\.invite)
        }
        // A database that has grown without a bound.
        let before = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        try before.write((0..<100).map { step("old \($0)", by: "mallory") } + [step("v", by: "victim")])
        before.close()
        let store = try ExchangeStore.open(path: folder.database, recordLimits: limits, clock: clock.clock)
        defer { store.close() }
        for number in 0..<300 {
            // The clock is set back, which makes no new record an old one.
            if number == 150 { clock.step(by: .seconds(-86_400)) }
            try store.write([step("\(number)", by: "mallory"), step("\(number)", by: "mallory")])
            #expect(try kept(by: "mallory").count == 20)
        }
        #expect(try Set(kept(by: "mallory")) == Set((280..<300).map { "\($0)" as InviteID }))
        #expect(try kept(by: "victim") == ["v"])
        for caller in 0..<60 { try store.write([step("by \(caller)", by: "user \(caller)")]) }
        #expect(try CallDetailRecord.read(from: .file(folder.database)).count == 50)
        #expect(try kept(by: "user 9").isEmpty && kept(by: "user 10").count == 1)
        let later = clock.now.advanced(by: .seconds(1_000_000))
        try store.write([.pruned(eventsBefore: later, recordsBefore: later)])
        try store.write((0..<30).map { step("again \($0)", by: "mallory") })
        #expect(try kept(by: "mallory").count == 20, "what was pruned is not counted any more")
    }

    @Test("CALL-7: One commit removes at most 500 old records, or 500 past a limit; the next commits remove the rest")
    func manyRecords() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        func step(_ name: InviteID, by caller: UserID = "mallory") -> Change {
            let kind = CallStep.Kind.rang(inviter: caller, inviterDevice: "a", group: nil)
            return .record(CallStep(invite: name, invitee: "victim", kind: kind, at: clock.now))
        }
        func kept() throws -> [InviteID] { try CallDetailRecord.read(from: .file(folder.database)).map(\.invite) }
        let before = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        try before.write((0..<1_200).map { step("old \($0)") })
        before.close()
        var limits = RecordLimits()
        (limits.perCaller, limits.total) = (100, 1_000)
        let store = try ExchangeStore.open(path: folder.database, recordLimits: limits, clock: clock.clock)
        defer { store.close() }
        var counts: [Int] = []
        for number in 0..<4 {
            try store.write([step("new \(number)")])
            counts.append(try kept().count)
        }
        #expect(counts == [701, 202, 100, 100])
        try store.write((0..<900).map { step("by \($0)", by: "user \($0)") })
        #expect(try kept().count == 1_000)

        clock.advance(by: .seconds(100))
        try store.write([.pruned(eventsBefore: clock.now, recordsBefore: clock.now)])
        #expect(try kept().count == 500)
        try store.write([step("last")])
        #expect(try kept() == ["last"])
        try store.write([.pruned(eventsBefore: clock.now, recordsBefore: clock.now)])
        #expect(try kept() == ["last"], "it is not old")
    }

    @Test("CALL-7: A call's record holds when it rang, was answered and ended, and why; the first reason counts")
    func records() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { store.close() }
        func write(_ kind: CallStep.Kind, _ invite: InviteID) throws {
            try store.write([.record(CallStep(invite: invite, invitee: "bob", kind: kind, at: clock.now))])
        }
        try write(.rang(inviter: "alice", inviterDevice: "a", group: nil), "1")
        clock.advance(by: .seconds(3))
        // Records go by the clock as it is, even if it was wrong when the exchange was started.
        clock.step(by: .seconds(3_600))
        try write(.answered(device: "b"), "1")
        clock.advance(by: .seconds(10))
        try write(.ended(reason: "completed", durationMilliseconds: 9_900), "1")
        try write(.ended(reason: "connectionLost", durationMilliseconds: 1), "1")
        try write(.rang(inviter: "carol", inviterDevice: "c", group: nil), "2")
        try write(.ended(reason: "noAnswer", durationMilliseconds: 0), "2")

        let records = try CallDetailRecord.read(from: .file(folder.database), user: "alice")
        let record = try #require(records.first)
        #expect(records.count == 1)
        #expect(record.reason == "completed" && record.durationMilliseconds == 9_900)
        #expect(record.inviteeDevice == "b")
        let answered = try #require(record.answeredAt)
        #expect(answered.unixMilliseconds - record.sentAt.unixMilliseconds == 3_603_000)
        #expect(record.endedAt?.unixMilliseconds == answered.unixMilliseconds + 10_000)
        #expect(try CallDetailRecord.read(from: .file(folder.database)).map(\.reason) == ["noAnswer", "completed"])
    }

    @Test(
        "A clock set by an hour, either way, over a restart of the exchange alone changes no time that remains",
        arguments: [-3_600, 3_600])
    func stepOverRestart(seconds: Int) throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let first = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        let invite = Sample.invite(at: clock.now)
        try first.write([.invite(invite), .event(Sample.event(1, at: clock.now, for: .device("b")))])
        first.close()
        clock.advance(by: .seconds(10))
        clock.step(by: .seconds(seconds))
        for _ in 0..<2 {
            let next = try ExchangeStore.open(path: folder.database, clock: clock.clock)
            let saved = try next.read()
            #expect(saved.invites.first?.deadline == invite.deadline)
            #expect(saved.events.first?.at == invite.sentAt)
            next.close()
        }
    }

    @Test(
        "Over a restart of the machine times go by the clock, and nothing that happened is in the future",
        arguments: [-3_600, 0, 3_600])
    func stepOverReboot(seconds: Int) throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let first = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        try first.write([.invite(Sample.invite(at: clock.now))])
        first.close()
        clock.advance(by: .seconds(10))
        clock.reboot()
        clock.step(by: .seconds(seconds))
        let second = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { second.close() }
        let invite = try #require(try second.read().invites.first)
        #expect(invite.deadline == clock.now.advanced(by: .seconds(20 - seconds)))
        #expect(invite.sentAt <= clock.now)
    }
}
