import ExchangeCore
@testable import ExchangeServer
import Foundation
import SignalWire
import Testing
import Core

/// A database as an earlier version left it.
@Suite struct MigrationTests {
    private func digest(_ name: String) -> String { name.padding(toLength: 64, withPad: "0", startingAt: 0) }

    /// Makes a database of version 2 with some tokens in it.
    private func makeVersion2(_ path: String, at milliseconds: Int64) throws {
        let database = try SQLiteDatabase(path: path)
        defer { database.close() }
        try StoreSchema.migrations.migrate(database, upTo: "2 pushes")
        try database.write { connection in
            func token(
                _ name: String, _ login: String, refresh: Bool = false, user: String = "alice",
                anonymous: Bool = false, application: String? = "app", scope: String? = nil, parent: String? = nil,
                superseded: Int64? = nil, revoked: Bool = false, seconds: Int64
            ) throws {
                let ends = milliseconds + 1_000 * seconds
                try connection.run(
                    "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        digest(name), digest(login), refresh, user, anonymous, application, scope,
                        parent.map { digest($0) }, superseded, revoked, ends, ends + 600_000, nil,
                    ])
            }
            // Exchanged three times: the first access token is forgotten, and nobody has used the last pair yet.
            for (number, parent) in [(1, nil), (2, nil), (3, "a2")] as [(Int64, String?)] {
                try token("c\(number)", "c0", parent: parent, seconds: 3_600 + number)
            }
            for (number, parent) in [(0, nil), (1, nil), (2, nil), (3, "a2")] as [(Int64, String?)] {
                try token(
                    "a\(number)", "c0", refresh: true, parent: parent, superseded: number < 2 ? milliseconds : nil,
                    seconds: 90_000 + number)
            }
            try token("d", "d", application: "school", scope: #"{"room":"lobby","role":"publisher"}"#, seconds: 100)
            try token("e", "e", user: "", application: nil, revoked: true, seconds: 100)
            try token("f", "f", user: "guest", anonymous: true, seconds: 100)
        }
    }

    @Test("Of sessions of version 9 those with an end on disk are missed, and those that were cut off are not")
    func missedSessions() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        let database = try SQLiteDatabase(path: folder.database)
        try StoreSchema.migrations.migrate(database, upTo: "9 events for all")
        try database.write { connection in
            for (id, end) in [("s1", nil), ("s2", clock.clock.timeOfDay().unixMilliseconds)] as [(String, Int64?)] {
                try connection.run(
                    """
                    INSERT INTO sessions (
                        id, user, guest, room, device, registered, connection, places, resumable_until_ms
                    ) VALUES (?, 'alice', '', '', 'a', 1, 'c', '[]', ?)
                    """, [id, end])
            }
        }
        database.close()
        let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
        defer { store.close() }
        let sessions = try store.read().sessions
        #expect(sessions.map(\.id) == ["s1", "s2"])
        #expect(sessions.map(\.isMissed) == [false, true])
        #expect(sessions.map(\.resumableUntil) == [nil, clock.now])
    }

    @Test("Tokens of version 2 are numbered as they were made, and their logins know how far their bearers have come")
    func logins() throws {
        let folder = try Folder()
        let clock = ScriptedClock()
        try makeVersion2(folder.database, at: clock.clock.timeOfDay().unixMilliseconds)
        for run in 1...2 {
            let store = try ExchangeStore.open(path: folder.database, clock: clock.clock)
            defer { store.close() }
            let saved = try store.read()
            #expect(saved.run == UInt64(run) && saved.tokens.count == 10)
            let numbers = Dictionary(uniqueKeysWithValues: saved.tokens.map { (String($0.digest.prefix(2)), $0) })
            #expect((0...3).compactMap { numbers["a\($0)"]?.generation } == [13, 14, 15, 16])
            #expect((1...3).compactMap { numbers["c\($0)"]?.generation } == [14, 15, 16])
            #expect(numbers["a1"]?.superseded != nil && numbers["a2"]?.superseded == nil)
            let logins = Dictionary(uniqueKeysWithValues: saved.logins.map { (String($0.id.prefix(2)), $0) })
            #expect(logins["c0"] == StoredLogin(id: digest("c0"), newest: 16, reached: 15))
            #expect(logins["d0"]?.issuer == "school", "signed, for it has no refresh token and no guest bears it")
            #expect(logins["e0"]?.issuer == "", "it may have been signed, and must be remembered to its end")
            #expect(logins["f0"] == StoredLogin(id: digest("f"), newest: 16, reached: 16))
            #expect(saved.logins.count == 4)
        }
    }
}
