import ExchangeCore
@testable import ExchangeServer
import Foundation
import SignalWire
import Testing
import Core

@Suite struct NameMigrationTests {
    /// An old database, opened by this version.
    private func opened(_ folder: Folder) throws -> ExchangeStore {
        try OldDatabase.make(at: folder.database)
        return try ExchangeStore.open(path: folder.database, clock: ScriptedClock().clock)
    }

    @Test("What an earlier version kept under good names lives on as it was")
    func good() throws {
        let folder = try Folder()
        let store = try opened(folder)
        defer { store.close() }
        let saved = try store.read()
        #expect(saved.run == 8)
        #expect(
            saved.groups == [
                StoredGroup(id: "class-7", name: "Class 7", owner: "alice", members: ["alice", "bob"])
            ])
        #expect(saved.invites.map(\.id) == ["invite-1"] && saved.invites.first?.idempotencyKey == "key")
        #expect(saved.calls.map(\.invite) == ["invite-0"])
        #expect(saved.pushTargets.map(\.device) == ["b"] && saved.pendingPushes.map(\.id) == ["push-1"])
        #expect(saved.tokens.count == 4 && saved.tokens.filter { $0.user == nil }.map(\.digest) == ["dead"])
        #expect(try CallDetailRecord.read(from: .file(folder.database)).map(\.invite) == ["invite-0"])
        #expect(try DeadPush.read(from: .file(folder.database)).map(\.push.id) == ["push-0"])
    }

    @Test("Sessions of accounts, guests and room tokens keep their devices, and what they missed, apart")
    func principals() throws {
        let folder = try Folder()
        let store = try opened(folder)
        defer { store.close() }
        let saved = try store.read()
        let alice = Principal.account("alice")
        let visitor = Principal(user: "alice", kind: .visitor("lobby"))
        let guest = Principal(user: "guest", kind: .guest(login: OldDatabase.guestsLogin))
        #expect(saved.sessions.map(\.id) == ["session-1", "session-2", "session-3"])
        #expect(saved.sessions.map(\.principal) == [alice, guest, visitor])
        #expect(saved.sessions.map(\.device) == ["a", "g", "a"])
        #expect(saved.sessions.last?.scope == StoredPlace(room: "lobby", role: "publisher"))
        let events = Dictionary(grouping: saved.events, by: \.principal).mapValues { $0.map(\.sequence) }
        #expect(events == [alice: [4], visitor: [5], guest: [9], .account("bob"): [2]])
        // Whoever was told of number 1,040 may come back: each has the numbers that were everybody's of that name.
        let streams = Dictionary(uniqueKeysWithValues: saved.streams.map { ($0.principal, $0) })
        #expect(streams[alice]?.reserved == 1_040 && streams[alice]?.forgotten == 3)
        #expect(streams[visitor]?.reserved == 1_040 && streams[visitor]?.forgotten == 3)
        #expect(streams[guest]?.reserved == 9)
    }

    @Test("Rows whose names do not fit are counted for the log, and set aside with the reason")
    func setAside() throws {
        let folder = try Folder()
        let store = try opened(folder)
        #expect(
            store.setAsideRows.map { "\($0.table) \($0.count)" } == [
                "call_records 1", "events 1", "groups 4", "invites 2", "push_targets 2", "sessions 3", "tokens 1",
            ])
        #expect(
            store.setAsideRows.first { $0.table == "call_records" }?.reason
                == "inviter_device has 300 bytes; 1 to 256 are allowed")
        // What bob missed is not all there any more, so that whoever comes back for it starts afresh.
        #expect(try store.read().streams.first { $0.principal == .account("bob") }?.forgotten == 3)
        store.close()

        let again = try ExchangeStore.open(path: folder.database, clock: ScriptedClock().clock)
        #expect(again.setAsideRows.isEmpty, "it is told once")
        again.close()
        let database = try SQLiteDatabase(path: folder.database)
        defer { database.close() }
        let rows = try database.read { try $0.allRows(of: "SELECT reason, content FROM set_aside ORDER BY id") }
        let contents = try rows.map { try $0.decode(String.self, forColumn: "content") }
        #expect(rows.count == 14)
        #expect(contents.contains { $0.contains(#""id":"class-7\\u{0}x""#) }, "\(contents)")
        #expect(contents.contains { $0.contains(#""id":"class\\u{202e}7""#) })
        #expect(contents.contains { $0.contains(#""id":"session-4""#) && $0.contains(#""device":"lobby""#) })
        let reasons = Set(try rows.map { try $0.decode(String.self, forColumn: "reason") })
        #expect(reasons.contains("device was cut off") && reasons.contains("id is not UTF-8"))
        #expect(reasons.contains("inviter_device must be in Unicode Normalization Form C"))
    }

    @Test("An empty database, and one that has nothing but good names, sets nothing aside")
    func nothing() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database, clock: ScriptedClock().clock)
        #expect(store.setAsideRows.isEmpty)
        #expect(try store.read().sessions.isEmpty)
        store.close()
    }
}
