import ExchangeCore
@testable import ExchangeServer
import Foundation
import JSON
import SignalWire
import Testing
import Core

/// What several are told stands on disk once.
@Suite struct EventBodyTests {
    private static let text = EventText(kept: #"{"data":{"payload":"once"},"type":"notification"}"#)

    private func signal(_ body: UInt64, to receivers: Int, sequence: UInt64, at now: Instant) -> [Change] {
        (0..<receivers).map { number in
            .event(
                StoredEvent(
                    principal: .account(UserID(ours: "user\(number)")), sequence: sequence,
                    body: EventBody(number: body, text: Self.text), audience: .device("d"), at: now))
        }
    }

    private func count(_ table: String, _ path: String) throws -> Int {
        let database = try SQLiteDatabase(path: path)
        defer { database.close() }
        return Int(try database.read { try $0.firstValue(of: "SELECT count(*) FROM \(table)").integer } ?? -1)
    }

    @Test("SIG-1: A signal to sixty is one body on disk, which goes with the last event that has it")
    func shared() throws {
        let folder = try Folder()
        let now = ScriptedClock().now
        let store = try ExchangeStore.open(path: folder.database, clock: ScriptedClock().clock)
        defer { store.close() }
        try store.write(signal(1, to: 60, sequence: 1, at: now))
        // Written twice, as after a commit of which nobody heard.
        try store.write(signal(1, to: 60, sequence: 1, at: now))
        #expect(try count("events", folder.database) == 60)
        #expect(try count("event_bodies", folder.database) == 1)
        try store.write(signal(2, to: 1, sequence: 2, at: now))
        #expect(try count("event_bodies", folder.database) == 1, "what one is told stands in its row")

        let events = try store.read().events
        #expect(events.count == 61 && events.allSatisfy { $0.body.text == Self.text })
        #expect(Set(events.filter { $0.sequence == 1 }.map(\.body.number)).count == 1)

        for number in 0..<59 {
            try store.write([.eventsForgotten(.account(UserID(ours: "user\(number)")), upTo: 1)])
        }
        #expect(try count("event_bodies", folder.database) == 1)
        try store.write([.streamForgotten(.account("user59"))])
        #expect(try count("event_bodies", folder.database) == 0)
        try store.write(signal(3, to: 60, sequence: 3, at: now))
        try store.write([.eventsPruned(before: now.advanced(by: .seconds(1)))])
        #expect(try count("events", folder.database) == 0)
        #expect(try count("event_bodies", folder.database) == 0)
    }

    @Test("Events from version 5 are there after the migration, and one that is damaged stays so")
    func migration() throws {
        let folder = try Folder()
        let database = try SQLiteDatabase(path: folder.database)
        try StoreSchema.migrations.migrate(database, upTo: "5 identifiers")
        try database.write { connection in
            try connection.execute(
                """
                INSERT INTO events (user, guest, room, sequence, body, device, at_ms) VALUES
                ('bob', '', '', 7, '{"data":{"payload":{"n":9007199254740993}},"sequence":7,"type":"notification"}',
                    'b', 1699999999000),
                ('bob', '', '', 8, '!"data":{"payload":1},"sequence":8,"type":"notification"}', 'b', 1699999999000)
                """)
        }
        database.close()
        let store = try ExchangeStore.open(path: folder.database, clock: ScriptedClock().clock)
        defer { store.close() }
        let events = try store.read().events
        #expect(events.map(\.sequence) == [7, 8])
        let payload = NotificationReceived(payload: ["n": 9_007_199_254_740_993])
        #expect(events.first?.body.event == .notification(payload))
        #expect(events.last?.body.event == nil)
        let message = String(decoding: events[0].body.text.message(numbered: 7), as: UTF8.self)
        #expect(message.components(separatedBy: "sequence").count == 2)
    }
}
