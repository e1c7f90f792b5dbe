import ExchangeStore
import Foundation
import GRDB
import SignalWire
import Testing

@Suite struct StoreFaultTests {
    /// What opening the database comes to; `nil` if it can be opened.
    private func code(opening path: String, ifCorrupt: ExchangeStore.CorruptFilePolicy = .refuse) -> StoreError.Code? {
        do throws(StoreError) {
            try ExchangeStore.open(path: path, ifCorrupt: ifCorrupt).close()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("A database belongs to one exchange at a time, and to the next once that has closed it")
    func lock() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        #expect(code(opening: folder.database) == .inUse)
        store.close()
        #expect(code(opening: folder.database) == nil)
    }

    @Test("Nobody but its owner may read the database or its log")
    func rights() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        defer { store.close() }
        try store.write([.sessionForgotten("none")])
        for ending in ["", "-wal", "-shm", ".lock"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.database + ending)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(ending)")
        }
    }

    @Test("A database that others may read is theirs no more once it is opened, and neither are its log and its lock")
    func rightsOfOthers() throws {
        let folder = try Folder()
        let first = try ExchangeStore.open(path: folder.database)
        try first.write([.sessionForgotten("none")])
        #expect(first.wasOpenToOthers.isEmpty)
        // As after a kill: the log is left behind. Beside it stands one that is open while it is copied.
        let copy = folder.path + "/copy.sqlite"
        for ending in ["", "-wal", "-shm", ".lock"] {
            try FileManager.default.copyItem(atPath: folder.database + ending, toPath: copy + ending)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: copy + ending)
        }
        first.close()
        let second = try ExchangeStore.open(path: copy)
        defer { second.close() }
        #expect(second.wasOpenToOthers == ["", "-wal", "-shm", ".lock"].map { copy + $0 })
        try second.write([.sessionForgotten("none")])
        for ending in ["", "-wal", "-shm", ".lock"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: copy + ending)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(ending)")
        }
    }

    @Test("A file that is no database is refused with what to do, and set aside if that is asked for")
    func noDatabase() throws {
        let folder = try Folder()
        let text = Data(String(repeating: "This is no database. ", count: 500).utf8)
        try text.write(to: URL(fileURLWithPath: folder.database))
        #expect(code(opening: folder.database) == .corrupt)
        #expect(FileManager.default.contents(atPath: folder.database) == text)
        let store = try ExchangeStore.open(path: folder.database, ifCorrupt: .setAside)
        defer { store.close() }
        let aside = try #require(store.setAside)
        #expect(FileManager.default.contents(atPath: aside) == text)
        #expect(try store.read().run == 1)
    }

    @Test("A database that a newer version has changed is refused, and left as it is")
    func newer() throws {
        let folder = try Folder()
        try ExchangeStore.open(path: folder.database).close()
        let queue = try DatabaseQueue(path: folder.database)
        try queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99 days to come')") }
        try queue.close()
        #expect(code(opening: folder.database, ifCorrupt: .setAside) == .newer)
        let later = try DatabaseQueue(path: folder.database)
        #expect(try later.read { try Int.fetchOne($0, sql: "SELECT runs FROM exchange") } == 1)
    }

    @Test("Damage in the middle of the file is found at the start")
    func damage() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        let now = ScriptedClock().now
        for number in 1...200 {
            try store.write([.event(Sample.event(UInt64(number), at: now, for: .device("b")))])
        }
        store.close()
        var bytes = try #require(FileManager.default.contents(atPath: folder.database))
        try #require(bytes.count > 60_000)
        bytes.replaceSubrange(4_096..<bytes.count, with: Data(repeating: 0x5A, count: bytes.count - 4_096))
        try bytes.write(to: URL(fileURLWithPath: folder.database))
        #expect(code(opening: folder.database) == .corrupt)
    }

    @Test("A value that no exchange writes is an error, never a trap, and is not quoted")
    func nonsense() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        try store.write([.invite(Sample.invite(at: ScriptedClock().now))])
        store.close()
        // The body's JSON is broken in place, behind SQLite's back.
        var bytes = try #require(FileManager.default.contents(atPath: folder.database))
        let body = try #require(bytes.range(of: Data(#"{"offer""#.utf8)))
        bytes[body.lowerBound] = UInt8(ascii: "!")
        try bytes.write(to: URL(fileURLWithPath: folder.database))
        let broken = try ExchangeStore.open(path: folder.database)
        defer { broken.close() }
        do {
            _ = try broken.read()
            Issue.record("it was read")
        } catch {
            #expect(error.code == .corrupt)
            #expect(!error.description.contains("v=0"))
        }
    }

    @Test("CONN-5: An event that no exchange writes is none to resume with, and costs the others nothing")
    func brokenEvent() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        let now = ScriptedClock().now
        try store.write([
            .event(Sample.event(1, at: now, for: .device("b"))), .event(Sample.event(2, at: now, for: .device("b"))),
        ])
        store.close()
        var bytes = try #require(FileManager.default.contents(atPath: folder.database))
        let body = try #require(bytes.range(of: Data(#"{"data""#.utf8)))
        bytes[body.lowerBound] = UInt8(ascii: "!")
        try bytes.write(to: URL(fileURLWithPath: folder.database))
        let broken = try ExchangeStore.open(path: folder.database)
        defer { broken.close() }
        let events = try broken.read().events
        #expect(events.map(\.sequence) == [1, 2])
        #expect(events.filter { $0.body.event == nil }.count == 1)
    }

    @Test("A folder that is not there is an error that names the path")
    func nowhere() throws {
        let folder = try Folder()
        #expect(code(opening: folder.path + "/none/exchange.sqlite") == .notReachable)
    }
}
