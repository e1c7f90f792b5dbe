import ExchangeCore
@testable import ExchangeServer
import SignalSupport
import SignalWire
import Testing
import Core

/// Who knows whom, on disk.
@Suite struct AcquaintanceTests {
    private func names(_ saved: Saved) -> Set<String> { Set(saved.acquaintances.map { "\($0.owner) \($0.user)" }) }

    @Test("INV-16: Acquaintances survive a restart, except those that were forgotten")
    func kept() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        let now = clock.now
        try store.write([
            .acquaintance(StoredAcquaintance(owner: "bob", user: "alice", used: now)),
            .acquaintance(StoredAcquaintance(owner: "bob", user: "carol", used: now)),
            .acquaintance(StoredAcquaintance(owner: "carol", user: "bob", used: now)),
            .acquaintance(StoredAcquaintance(owner: "carol", user: "alice", used: now)),
            .acquaintance(StoredAcquaintance(owner: "alice", user: "carol", used: now)),
            .acquaintanceForgotten(owner: "bob", user: "carol"),
            .acquaintancesForgotten(of: "alice"),
            .acquaintance(StoredAcquaintance(owner: "carol", user: "bob", used: now.advanced(by: .seconds(-60)))),
        ])
        store.close()
        clock.step(by: .seconds(86_400))
        let next = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { next.close() }
        #expect(
            try next.read().acquaintances
                == [StoredAcquaintance(owner: "carol", user: "bob", used: now.advanced(by: .seconds(-60)))])
    }

    @Test("An earlier database makes those acquainted whose calls were answered, and those who were called")
    func seeded() throws {
        let folder = try Folder()
        let database = try SQLiteDatabase(path: folder.database)
        try StoreSchema.migrations.migrate(database, upTo: "5 identifiers")
        try database.write { connection in
            try connection.execute(
                """
                INSERT INTO call_records (invite, invitee, inviter, inviter_device, sent_ms, answered_ms) VALUES
                    ('1', 'bob', 'alice', 'a', 1000, 2000), ('2', 'bob', 'alice', 'a', 3000, NULL),
                    ('3', 'bob', 'mallory', 'm', 4000, NULL), ('4', 'bob', 'bob', 'b', 5000, 6000);
                """)
        }
        database.close()
        let store = try ExchangeStore.open(path: folder.database)
        defer { store.close() }
        let saved = try store.read()
        #expect(names(saved) == ["bob alice", "alice bob", "mallory bob"])
        let used = Dictionary(uniqueKeysWithValues: saved.acquaintances.map { ($0.owner, $0.used) })
        #expect(used["bob"].map { one in used["alice"].map { one < $0 } ?? false } ?? false)
    }
}
