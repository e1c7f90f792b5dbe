@testable import ExchangeServer
import Core
import ExchangeCore
import Foundation
import JSON
import SignalSupport
import SignalWire
import TestSupport
import Testing

/// Each case of ``Change``, so that a new one does not compile without one here.
private enum EveryChange {
    static func changes(at now: Instant) -> [Change] {
        let later = now.advanced(by: .seconds(60))
        let digest = String(repeating: "ab", count: 32)
        let guest = Principal(user: "bob", kind: .guest(login: digest))
        let visitor = Principal(user: "bob", kind: .visitor("lobby"))
        let token = StoredToken(
            digest: digest, user: "bob", isAnonymous: false, expires: later, login: digest, isRefresh: true,
            application: "app", scope: StoredPlace(room: "lobby", role: "moderator"), generation: 3, superseded: now,
            isRevoked: false, forgotten: later, epoch: 1_767_225_600)
        var old = token
        (old.digest, old.user, old.scope, old.epoch) = ("old", nil, nil, nil)
        let shared = Sample.event(9, at: now, for: .every).body
        func event(_ principal: Principal, _ number: UInt64, _ audience: StoredEvent.Audience) -> Change {
            .event(StoredEvent(principal: principal, sequence: number, body: shared, audience: audience, at: now))
        }
        let dead = Sample.push("push-3", at: now)
        let call = StoredCall(
            invite: "invite-1", inviter: "alice", inviterDevice: "a", invitee: "bob", inviteeDevice: "b",
            acceptedAt: now)
        var other = call
        other.invitee = "carol"
        func session(_ id: SessionID, _ principal: Principal) -> StoredSession {
            StoredSession(
                id: id, principal: principal, device: "b", isRegistered: true, connection: "c1", login: digest,
                places: [StoredPlace(room: "lobby")], resumableUntil: later)
        }
        func group(_ id: GroupID, _ name: String?) -> StoredGroup {
            StoredGroup(id: id, name: name, owner: "bob", members: ["bob", "alice"])
        }
        func targets(_ device: DeviceID) -> StoredPushTargets {
            StoredPushTargets(user: "bob", device: device, targets: [.init(kind: "apns", token: Redacted("t"))])
        }
        func step(_ invitee: UserID, _ kind: CallStep.Kind) -> Change {
            .record(CallStep(invite: "invite-1", invitee: invitee, kind: kind, at: now))
        }
        var second = Sample.invite(at: now)
        (second.id, second.data, second.payload, second.idempotencyKey) = ("invite-2", nil, nil, nil)
        return [
            .token(token), .token(old), .tokenForgotten(digest: "old"),
            .login(StoredLogin(id: digest, family: "f", newest: 5, reached: 4, used: now)),
            .login(StoredLogin(id: "x")),
            .loginForgotten("x"), .session(session("s2", guest)), .session(session("s1", visitor)),
            .session(session("s0", .account("bob"))), .sessionForgotten("s0"), .invite(Sample.invite(at: now)),
            .invite(second), .inviteForgotten("invite-2"), .group(group("z", "of\0bob")),
            .group(group("a", "\u{E000}0")),
            .group(group("m", nil)), .groupForgotten("m"), .pushTargets(targets("1")), .pushTargets(targets("2")),
            .pushTargets(targets("1")), .push(Sample.push("push-2", at: now)), .push(Sample.push("push-1", at: now)),
            .pushForgotten("push-2"), .pushDied(DeadPush(dead, .gone, detail: "404"), at: now),
            .deadPushesPruned(before: now), .acquaintance(StoredAcquaintance(owner: "bob", user: "alice", used: now)),
            .acquaintance(StoredAcquaintance(owner: "bob", user: "carol", used: now)),
            .acquaintanceForgotten(owner: "bob", user: "carol"), .userAdded("bob", at: 5), .userAdded("carol", at: 6),
            .userForgotten("carol"), .fileUsers(["alice", "bob"]), .fileUsers(["bob", "d\"ora"]),
            .acquaintance(StoredAcquaintance(owner: "dora", user: "carol", used: now)),
            .acquaintancesForgotten(of: "carol"), .call(call), .call(other),
            .callForgotten(invite: "invite-1", invitee: "carol"), event(.account("bob"), 3, .device("b")),
            event(.account("bob"), 4, .registered(except: "b")), event(visitor, 3, .every),
            event(guest, 7, .registered(except: nil)),
            .event(Sample.event(11, at: now, for: .every)), .sequenceReserved(.account("carol"), upTo: 1_025),
            .sequenceReserved(.account("carol"), upTo: 3), .eventsForgotten(.account("bob"), upTo: 3),
            .eventsPruned(before: now), .streamForgotten(guest),
            step("bob", .rang(inviter: "alice", inviterDevice: "a", group: "g")), step("bob", .answered(device: "b")),
            step("bob", .ended(reason: "completed", durationMilliseconds: 7)),
            step("bob", .ended(reason: "late", durationMilliseconds: 8)),
        ] + letters + [.pruned(eventsBefore: now, recordsBefore: now)]
    }

    /// Two of three letters, in the wrong order, and how far they have come.
    private static var letters: [Change] {
        guard let one = Shard(0), let two = Shard(63), let body = KeptJSON(["n": 1]) else { return [] }
        func letter(_ number: UInt64) -> Change { .letter(Letter(from: one, to: two, number: number, body: body)) }
        let epoch = OwnerEpoch(timeline: "2", number: 7)
        return [
            letter(1), letter(3), letter(2), .lettersForgotten(from: one, to: two, upTo: 1),
            .letterMarks(StoredLetterMarks(shard: two, peer: one)),
            .letterMarks(StoredLetterMarks(shard: two, peer: one, acknowledged: 1, consumed: 9, peerEpoch: epoch)),
            .letterMarks(StoredLetterMarks(shard: one, peer: two, acknowledged: 1)),
        ]
    }

    /// Does not compile for a case that is not named here.
    static func name(_ change: Change) -> String {
        switch change {
        case .token: "token"
        case .tokenForgotten: "tokenForgotten"
        case .login: "login"
        case .loginForgotten: "loginForgotten"
        case .session: "session"
        case .sessionForgotten: "sessionForgotten"
        case .invite: "invite"
        case .inviteForgotten: "inviteForgotten"
        case .group: "group"
        case .groupForgotten: "groupForgotten"
        case .pushTargets: "pushTargets"
        case .push: "push"
        case .pushForgotten: "pushForgotten"
        case .pushDied: "pushDied"
        case .deadPushesPruned: "deadPushesPruned"
        case .acquaintance: "acquaintance"
        case .acquaintanceForgotten: "acquaintanceForgotten"
        case .userAdded: "userAdded"
        case .userForgotten: "userForgotten"
        case .fileUsers: "fileUsers"
        case .acquaintancesForgotten: "acquaintancesForgotten"
        case .call: "call"
        case .callForgotten: "callForgotten"
        case .event: "event"
        case .sequenceReserved: "sequenceReserved"
        case .eventsForgotten: "eventsForgotten"
        case .eventsPruned: "eventsPruned"
        case .streamForgotten: "streamForgotten"
        case .record: "record"
        case .pruned: "pruned"
        case .letter: "letter"
        case .lettersForgotten: "lettersForgotten"
        case .letterMarks: "letterMarks"
        }
    }
}

@Suite("The exchange's state in PostgreSQL", .enabled(if: PostgresServer.isInstalled), .timeLimit(.minutes(3)))
struct PostgresStoreTests {
    private func database() throws -> PostgresDatabase { try PostgresServer.shared.get().database() }

    private func expectEqual(_ saved: Saved, _ other: Saved) {
        #expect(saved.tokens == other.tokens && saved.logins == other.logins)
        #expect(saved.sessions == other.sessions && saved.invites == other.invites && saved.groups == other.groups)
        #expect(saved.pushTargets == other.pushTargets && saved.pendingPushes == other.pendingPushes)
        #expect(saved.added == other.added && saved.fileUsers == other.fileUsers)
        #expect(Set(saved.acquaintances) == Set(other.acquaintances) && saved.calls == other.calls)
        #expect(Set(saved.streams) == Set(other.streams) && saved.events == other.events)
        #expect(saved.letters == other.letters && saved.letterMarks == other.letterMarks)
    }

    @Test("Each kind of change, written once or twice, is read as from SQLite")
    func everyChange() async throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let changes = EveryChange.changes(at: clock.now)
        #expect(Set(changes.map(EveryChange.name)).count == 33)
        let sqlite = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { sqlite.close() }
        let database = try database()
        let postgres = try await database.owned(try database.settings(clock: clock.clock))
        defer { postgres.close() }
        for part in 1...changes.count {
            for store in [sqlite, postgres] as [any StateStore] { try store.write([changes[part - 1]]) }
        }
        expectEqual(try postgres.read(), try sqlite.read())
        for store in [sqlite, postgres] as [any StateStore] { try store.write(changes) }
        expectEqual(try postgres.read(), try sqlite.read())
        let counts = try database.run(
            """
            SELECT (SELECT count(*) FROM handset.dead_pushes) AS dead, (SELECT count(*) FROM handset.call_records) AS records,
                (SELECT reason FROM handset.call_records) AS reason,
                (SELECT records FROM handset.call_record_counts WHERE inviter = '') AS counted
            """)
        #expect(try counts[0].integer("dead") == 1)
        #expect(try counts[0].integer("records") == 1)
        #expect(try counts[0].integer("counted") == 1)
        #expect(try counts[0].text("reason") == "completed")
    }

    @Test("Records of calls and dead pushes are read as from SQLite, also by user")
    func records() async throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let sqlite = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { sqlite.close() }
        let database = try database()
        let location = StateLocation.postgres(PostgresConfiguration(address: try database.address()))
        #expect(throws: StoreError.self) { try CallDetailRecord.read(from: location) }
        let postgres = try await database.owned(try database.settings(clock: clock.clock))
        defer { postgres.close() }
        let changes = EveryChange.changes(at: clock.now).dropLast()
        for store in [sqlite, postgres] as [any StateStore] { try store.write(Array(changes)) }
        for user in [nil, "alice", "bob", "nobody"] as [UserID?] {
            let records = try CallDetailRecord.read(from: location, user: user)
            let expected = try CallDetailRecord.read(from: .file(folder.database), user: user)
            #expect(records.map(\.invite) == expected.map(\.invite))
            #expect(records.map(\.reason) == expected.map(\.reason))
            #expect(
                try DeadPush.read(from: location, user: user).map(\.push)
                    == (try DeadPush.read(from: .file(folder.database), user: user).map(\.push)))
        }
        #expect(try CallDetailRecord.read(from: location).count == 1)
        #expect(try CallDetailRecord.read(from: location, limit: 0).isEmpty)
    }

    @Test("What is brought over from SQLite is read as it was there, once, and only into an empty database")
    func migration() async throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let sqlite = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        let changes = EveryChange.changes(at: clock.now).dropLast()
        try sqlite.write(Array(changes))
        let records = try CallDetailRecord.read(from: .file(folder.database))
        let database = try database()
        let task = StateImport(
            from: folder.database, into: PostgresConfiguration(address: try database.address()))
        #expect(throws: StoreError.self) { try task.run() }
        sqlite.close()
        let counts = try task.rehearse()
        #expect(try database.run("SELECT 1 WHERE to_regnamespace('handset') IS NOT NULL").isEmpty)
        #expect(try task.run() == counts)
        #expect(counts.filter { $0.rows == 0 }.map(\.table) == ["outdated_events"])
        let reopened = try ExchangeStore.open(path: folder.database)
        let expected = try reopened.read()
        reopened.close()
        let postgres = try await database.owned(try database.settings(clock: .system))
        defer { postgres.close() }
        let saved = try postgres.read()
        #expect(saved.run >= expected.run)
        #expect(saved.groups == expected.groups && saved.pushTargets == expected.pushTargets)
        #expect(saved.tokens.map(\.digest) == expected.tokens.map(\.digest))
        #expect(saved.sessions.map(\.id) == expected.sessions.map(\.id))
        #expect(saved.invites.map(\.id) == expected.invites.map(\.id))
        #expect(saved.added == expected.added && saved.fileUsers == expected.fileUsers)
        #expect(saved.events.map(\.body.text) == expected.events.map(\.body.text))
        #expect(Set(saved.streams) == Set(expected.streams))
        let brought = try CallDetailRecord.read(from: .postgres(PostgresConfiguration(address: try database.address())))
        #expect(brought.map(\.invite) == records.map(\.invite) && brought.map(\.sentAt) == records.map(\.sentAt))
        #expect(try database.run("SELECT records FROM handset.call_record_counts").count == 2)
        postgres.close()
        #expect(throws: StoreError.self) { try task.run() }
    }

    @Test("CALL-7: Past its limits the oldest records are removed, and outdated ones some hundred at a time")
    func recordLimits() async throws {
        let database = try database()
        let clock = ScriptedClock()
        var settings = try database.settings(clock: clock.clock)
        (settings.recordLimits.perCaller, settings.recordLimits.total) = (3, 5)
        let store = try await database.owned(settings)
        defer { store.close() }
        func ring(_ number: Int, _ caller: UserID) throws {
            let kind = CallStep.Kind.rang(inviter: caller, inviterDevice: "a", group: nil)
            try store.write([
                .record(CallStep(invite: InviteID("i\(number)"), invitee: "bob", kind: kind, at: clock.now))
            ])
        }
        for number in 1...4 { try ring(number, "alice") }
        for number in 5...7 { try ring(number, "carol") }
        let left = try database.run("SELECT invite FROM handset.call_records ORDER BY rowid").map {
            try $0.text("invite")
        }
        #expect(left == ["i3", "i4", "i5", "i6", "i7"])
        let later = clock.now.advanced(by: .seconds(3_600))
        try store.write([.pruned(eventsBefore: later, recordsBefore: later)])
        #expect(try database.run("SELECT * FROM handset.call_records").isEmpty)
        let counts = try database.run("SELECT records FROM handset.call_record_counts")
        #expect(try counts.map { try $0.integer("records") } == [0])
    }

    @Test(
        "A second process waits while the owner writes, takes over once it does not, and the first writes nothing more")
    func takeover() async throws {
        let database = try database()
        let first = try await database.owned(try database.settings("one"))
        let second = PostgresStore(try database.settings("two"))
        try first.write([.userAdded("bob", at: 1)])
        #expect(first.lease?.isHeld == true)
        let beginning = PostgresConnection.now
        while PostgresConnection.now - beginning < 2_000_000_000 {
            try first.write([])
            #expect(try second.attempt() == .waiting(PostgresStore.Owner(name: "one")))
        }
        try await until {
            let attempt = try second.attempt()
            // Never do both hold it: the owner's ends before another can take it.
            if attempt == .taken { #expect(first.lease?.isHeld == false) }
            return attempt == .taken
        }
        #expect(throws: StoreError.self) { try first.write([.userAdded("carol", at: 2)]) }
        #expect(throws: StoreError.self) { try first.read() }
        do throws(StoreError) {
            try first.probe()
            Issue.record("the first still owns it")
        } catch {
            #expect(error.code == .fenced)
        }
        #expect(first.lease?.isHeld == false && second.lease?.isHeld == true)
        #expect(try second.read().added == ["bob": 1])
        first.close()
        #expect(throws: Never.self) { try second.write([]) }
        second.close()
    }

    @Test("An owner that ends in order is followed at once")
    func handover() async throws {
        let database = try database()
        let first = try await database.owned(try database.settings("one"))
        let second = PostgresStore(try database.settings("two"))
        #expect(try second.attempt() == .waiting(PostgresStore.Owner(name: "one")))
        first.close()
        #expect(try second.attempt() == .taken)
        second.close()
    }

    /// A standby that the owner has found ready.
    private func readied(_ standby: PostgresStore, for owner: PostgresStore) throws -> PostgresStore.Standby {
        guard case .waiting = try standby.attempt() else { throw StoreError(.failed, "it was taken") }
        _ = try standby.standBy()
        _ = try owner.leave()
        guard case .waiting = try standby.attempt() else { throw StoreError(.failed, "it was taken") }
        #expect(try standby.standBy())
        return try #require(try owner.leave())
    }

    @Test("What a standby has read ahead, with what was written since, is what an owner reads from nothing")
    func readAhead() async throws {
        let clock = ScriptedClock()
        let changes = EveryChange.changes(at: clock.now)
        let database = try database()
        var owner = try await database.owned(try database.settings("0", clock: clock.clock))
        for round in 1...7 {
            let cut = changes.count * round / 8
            try owner.write(Array(changes[..<cut]))
            let standby = PostgresStore(try database.settings("\(round)", clock: clock.clock))
            let ready = try readied(standby, for: owner)
            #expect(ready.isReady && ready.process.name == "\(round)")
            // One by one, so that rows are written again, removed, and made again by different transactions.
            for change in changes[cut...] { try owner.write([change]) }
            try owner.giveAway(to: ready)
            #expect(try standby.attempt() == .taken)
            let saved = try standby.read()
            expectEqual(saved, try standby.read())
            #expect(!saved.invites.isEmpty && !saved.events.isEmpty && !saved.sessions.isEmpty)
            owner.close()
            owner = standby
        }
        owner.close()
    }

    @Test("A clock that was set since a standby has read ahead has it read from nothing")
    func readAheadIsDropped() async throws {
        let (here, there) = (ScriptedClock(), ScriptedClock())
        let database = try database()
        let owner = try await database.owned(try database.settings("one", clock: here.clock))
        try owner.write([.invite(Sample.invite(at: here.now))])
        let standby = PostgresStore(try database.settings("two", clock: there.clock))
        defer { standby.close() }
        let ready = try readied(standby, for: owner)
        try owner.giveAway(to: ready)
        // As if the database's clock had been set: this process's instants have gone on by an hour less.
        there.advance(by: .seconds(3_600))
        #expect(try standby.attempt() == .taken)
        let deadline = try #require(try standby.read().invites.first?.deadline)
        let left = there.now.duration(to: deadline)
        #expect(left <= .seconds(30) && left > .seconds(20), "\(left)")
        owner.close()
    }

    @Test("An owner that ends gives the lease to one standby, which others leave alone for the lease's duration")
    func successor() async throws {
        let database = try database()
        let owner = try await database.owned(try database.settings("one"))
        #expect(try owner.leave() == nil, "there is no standby")
        let second = PostgresStore(try database.settings("two", url: "https://two.test"))
        let third = PostgresStore(try database.settings("three"))
        #expect(try third.attempt() == .waiting(PostgresStore.Owner(name: "one")))
        #expect(try third.standBy(), "the owner has said that it ends")
        #expect(try owner.leave()?.process.name == "three")
        third.close()
        #expect(try owner.leave() == nil, "it is gone")
        let ready = try readied(second, for: owner)
        #expect(ready.process == PostgresStore.Owner(name: "two", url: "https://two.test"))
        let fourth = PostgresStore(try database.settings("four"))
        defer { fourth.close() }
        try owner.giveAway(to: ready)
        #expect(owner.lease?.isHeld == false)
        #expect(try fourth.attempt() == .waiting(PostgresStore.Owner(name: "another standby")))
        #expect(try !owner.isFollowed())
        #expect(try second.attempt() == .taken)
        #expect(try !owner.isFollowed(), "it does not serve yet")
        try second.noteServing()
        #expect(try owner.isFollowed())
        #expect(throws: StoreError.self) { try owner.write([]) }
        owner.close()
        #expect(try second.leave() == nil, "the fourth has not said that it waits")
        second.close()
        #expect(try fourth.attempt() == .taken)
    }

    @Test("A standby that was named and dies is waited for no longer than the lease")
    func deadSuccessor() async throws {
        let database = try database()
        let owner = try await database.owned(try database.settings("one"))
        let second = PostgresStore(try database.settings("two"))
        let ready = try readied(second, for: owner)
        second.close()
        let other = PostgresStore(try database.settings("three"))
        defer { other.close() }
        try owner.giveAway(to: ready)
        owner.close()
        let began = PostgresConnection.now
        try await until { try other.attempt() == .taken }
        #expect(PostgresConnection.now - began >= 600_000_000)
    }

    @Test("A standby reads ahead once its owner has been silent for a third of the lease, and takes over with that")
    func silentOwner() async throws {
        let database = try database()
        let owner = try await database.owned(try database.settings("one"))
        try owner.write([.userAdded("bob", at: 1)])
        let standby = PostgresStore(try database.settings("two"))
        defer { standby.close() }
        try await until {
            if try standby.attempt() == .taken { return true }
            #expect(try !standby.standBy())
            return false
        }
        #expect(try standby.read().added == ["bob": 1])
    }

    @Test("A process that waits learns where the owner's clients are, and each taking has a newer epoch")
    func ownerAddress() async throws {
        let database = try database()
        let first = try await database.owned(try database.settings("one", url: "https://one.test:8555"))
        let second = PostgresStore(try database.settings("two"))
        #expect(try second.attempt() == .waiting(PostgresStore.Owner(name: "one", url: "https://one.test:8555")))
        let before = try #require(first.lease?.epoch)
        #expect(second.lease?.epoch == nil)
        first.close()
        #expect(try second.attempt() == .taken)
        #expect(try #require(second.lease?.epoch) > before)
        #expect(try database.run("SELECT url FROM handset.lease")[0].text("url") == nil)
        second.close()
    }

    @Test("Tables of the first version get what is new when an exchange starts, also with two that start at once")
    func olderTables() async throws {
        let database = try database()
        try await database.owned(try database.settings()).close()
        try database.run("ALTER TABLE handset.lease DROP COLUMN url; UPDATE handset.exchange SET version = 1")
        let settings = try database.settings("two", url: "https://two.test")
        let other = Task.detached { try? PostgresStore(settings).attempt() }
        let store = try await database.owned(try database.settings("three", url: "https://three.test"))
        _ = await other.value
        let row = try database.run("SELECT version, url FROM handset.exchange, handset.lease")[0]
        #expect(try row.integer("version") == PostgresSchema.version)
        #expect(try row.text("url") != nil)
        store.close()
    }

    @Test("A lost connection leaves the outcome open, and reading again continues as the same owner with another epoch")
    func lostConnection() async throws {
        let database = try database()
        let store = try await database.owned(try database.settings())
        defer { store.close() }
        try store.write([.userAdded("bob", at: 1)])
        let before = try database.run("SELECT epoch FROM handset.lease")[0].integer("epoch")
        try database.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        do throws(StoreError) {
            try store.write([.userAdded("carol", at: 2)])
            Issue.record("the connection is there still")
        } catch {
            #expect(error.code == .unknown)
        }
        try store.probe()
        #expect(try store.read().added == ["bob": 1])
        #expect(try database.run("SELECT epoch FROM handset.lease")[0].integer("epoch") == (before ?? 0) + 1)
        try store.write([.userAdded("dora", at: 3)])
        #expect(try store.read().added == ["bob": 1, "dora": 3])
    }

    @Test("The session of an owner that was stopped within a transaction is ended by its successor")
    func stoppedTransaction() async throws {
        let database = try database()
        let first = try await database.owned(try database.settings("one"))
        let session = try PostgresConnection(
            try database.address().parameters(password: nil, lease: .seconds(3)), within: .seconds(10))
        _ = try session.run(
            [
                PostgresStatement("BEGIN"),
                PostgresStatement("UPDATE handset.lease SET backend = pg_backend_pid()"),
                PostgresStatement("COMMIT"), PostgresStatement("BEGIN"),
                PostgresStatement("UPDATE handset.lease SET lease_ms = lease_ms"),
            ], within: .seconds(10))
        let second = try await database.owned(try database.settings("two"))
        #expect(throws: PostgresFailure.self) { try session.run([PostgresStatement("COMMIT")], within: .seconds(10)) }
        second.close()
        first.close()
    }

    @Test("Times go by the database's clock: another machine, an hour apart, reads the same time left")
    func clocksApart() async throws {
        let database = try database()
        let (here, there) = (ScriptedClock(), ScriptedClock())
        there.step(by: .seconds(3_600))
        there.reboot()
        let first = try await database.owned(try database.settings("one", clock: here.clock))
        try first.write([.invite(Sample.invite(at: here.now))])
        first.close()
        let second = try await database.owned(try database.settings("two", clock: there.clock))
        defer { second.close() }
        let deadline = try #require(try second.read().invites.first?.deadline)
        let left = there.now.duration(to: deadline)
        #expect(left <= .seconds(30) && left > .seconds(20), "\(left)")
    }

    @Test("A promotion of a replica ends the lease even where its epoch is the same")
    func generation() async throws {
        let database = try database()
        let store = try await database.owned(try database.settings())
        defer { store.close() }
        // As on a replica that was promoted: the same epoch on another timeline.
        try database.run(
            "CREATE OR REPLACE FUNCTION handset.timeline() RETURNS text LANGUAGE sql AS $$ SELECT '0000000F' $$")
        do throws(StoreError) {
            try store.write([.userAdded("bob", at: 1)])
            Issue.record("it was written")
        } catch {
            #expect(error.code == .fenced)
        }
        #expect(try database.run("SELECT * FROM handset.users").isEmpty)
    }

    @Test("A database of something else, of a newer version, or without rights is refused with what to do")
    func refusals() async throws {
        func message(_ database: PostgresDatabase, user: String = "handset") throws -> StoreError {
            let store = PostgresStore(try database.settings(user: user))
            do throws(StoreError) {
                _ = try store.attempt()
            } catch {
                return error
            }
            return StoreError(.failed, "it was taken")
        }
        let foreign = try database()
        try foreign.run("CREATE SCHEMA handset; CREATE TABLE handset.patients (id int)")
        #expect(try message(foreign).code == .corrupt)
        #expect(try message(foreign).description.contains("schema handset is not that of an exchange"))

        let newer = try database()
        try await newer.owned(try newer.settings()).close()
        try newer.run("UPDATE handset.exchange SET version = 99")
        #expect(try message(newer).code == .newer)

        let closed = try database()
        try closed.run("CREATE ROLE visitor\(closed.name) LOGIN")
        let refused = try message(closed, user: "visitor\(closed.name)")
        #expect(refused.code == .readOnly && refused.description.contains("GRANT CREATE ON DATABASE"), "\(refused)")

        let nowhere = PostgresDatabase(folder: "/nonexistent", name: "x")
        #expect(try message(nowhere).code == .notReachable)
    }

    @Test("Ten thousand changes of one batch are written at once")
    func largeBatch() async throws {
        let database = try database()
        let clock = ScriptedClock()
        let store = try await database.owned(try database.settings(clock: clock.clock))
        defer { store.close() }
        try store.write((1...10_000).map { .event(Sample.event($0, at: clock.now, for: .every)) })
        #expect(try store.read().events.count == 10_000)
    }
}

@Suite("The address of a database of PostgreSQL") struct PostgresAddressTests {
    @Test("Servers, ports, user and database are read, and a folder of a socket")
    func parts() throws {
        let address = try PostgresAddress("postgresql://ex%40change@db1.example.org,[2001:db8::1]:6000/calls")
        #expect(address.servers.map(\.host) == ["db1.example.org", "2001:db8::1"])
        #expect(address.servers.map(\.port) == [5_432, 6_000])
        #expect(address.user == "ex@change" && address.database == "calls")
        #expect(address.description == "postgresql://db1.example.org:5432,[2001:db8::1]:6000/calls")
        #expect(address.usedTLS == .host)
        #expect(try PostgresAddress("postgresql://%2Frun%2Fpostgresql/handset").usedTLS == .off)
    }

    @Test(
        "What is no address, or has a password in it, is refused",
        arguments: [
            "mysql://a/b", "postgresql://a", "postgresql://a/", "postgresql:///b", "postgresql://u:secret@a/b",
            "postgresql://a:0/b", "postgresql://a/b?sslmode=disable", "postgresql://%zz/b", "postgresql://%00/b",
        ])
    func refused(_ text: String) {
        #expect(throws: (any Error).self) { try PostgresAddress(text) }
    }
}

@Suite struct StoredTextTests {
    @Test("Each text comes back, and none is stored with U+0000")
    func roundTrip() throws {
        for text in ["", "ü", "a\0b", "\u{E000}", "\u{E000}0", "x\u{E000}", "\0\u{E000}\0", "\u{E000}\u{E000}1"] {
            let stored = StoredText.encode(text)
            #expect(!stored.utf8.contains(0))
            #expect(try StoredText.decode(stored) == text)
        }
        #expect(throws: MissingValue.self) { try StoredText.decode("\u{E000}\u{E000}2") }
    }
}
