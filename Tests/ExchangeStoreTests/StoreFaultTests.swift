import ExchangeCore
@testable import ExchangeServer
import Foundation
import Glibc
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
        let link = folder.database + ".link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.database)
        #expect(code(opening: link) == .inUse)
        store.close()
        #expect(code(opening: folder.database) == nil)
    }

    @Test("Only its owner may read the database and its log")
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

    @Test("No file of another is changed by way of the database's names: not through links, nor by another name of it")
    func foreignFiles() throws {
        for ending in ["", "-wal", "-shm", ".lock"] {
            for isHard in [false, true] where ending != "" || isHard {
                let folder = try Folder()
                try ExchangeStore.open(path: folder.database).close()
                let (file, victim) = (folder.database + ending, folder.path + "/victim")
                try? FileManager.default.removeItem(atPath: file)
                try Data().write(to: URL(fileURLWithPath: victim))
                try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: victim)
                if isHard {
                    try FileManager.default.linkItem(atPath: victim, toPath: file)
                } else {
                    try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: victim)
                }
                #expect(code(opening: folder.database) == .notReachable, "\(ending), hard: \(isHard)")
                let attributes = try FileManager.default.attributesOfItem(atPath: victim)
                #expect(attributes[.posixPermissions] as? Int == 0o644, "\(ending), hard: \(isHard)")
            }
        }
    }

    @Test("A database that is named by a link of another user is refused", .enabled(if: geteuid() == 0))
    func linkOfAnother() throws {
        let folder = try Folder()
        try ExchangeStore.open(path: folder.database).close()
        let link = folder.path + "/link.sqlite"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.database)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: folder.database)
        try #require(lchown(link, 1, 1) == 0)
        #expect(code(opening: link) == .notReachable)
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.database)
        #expect(attributes[.posixPermissions] as? Int == 0o644)
        try #require(lchown(link, 0, 0) == 0)
        let store = try ExchangeStore.open(path: link)
        defer { store.close() }
        #expect(store.wasOpenToOthers.contains { $0.hasSuffix("/exchange.sqlite") || $0 == folder.database })
    }

    @Test("What others may read is closed to them while it is open here, without SQLite's locks")
    func locksStay() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        defer { store.close() }
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: folder.database)
        let before = try locks(folder.database)
        #expect(!before.isEmpty)
        #expect(try StoreFiles.make(folder.database) == [folder.database])
        #expect(try locks(folder.database) == before)
    }

    /// The lines of the system's list of locks that are of a file.
    private func locks(_ path: String) throws -> [String] {
        let number = try #require(
            try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int)
        let all = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
        return all.split(separator: "\n").filter { $0.contains(":\(number) ") }.map { String($0.drop { $0 != ":" }) }
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

    @Test("A database or log that is deleted, moved or replaced while it is open is written no more until it is back")
    func gone() throws {
        for ending in ["", "-wal"] {
            for replaces in [false, true] {
                let folder = try Folder()
                let store = try ExchangeStore.open(path: folder.database)
                defer { store.close() }
                func code(_ work: () throws(StoreError) -> Void) -> StoreError? {
                    do throws(StoreError) { try work() } catch { return error }
                    return nil
                }
                let sample = Change.invite(Sample.invite(at: ScriptedClock().now))
                #expect(code { () throws(StoreError) in try store.write([.sessionForgotten("none")]) } == nil)
                let (file, aside) = (folder.database + ending, folder.database + ".moved")
                try FileManager.default.moveItem(atPath: file, toPath: aside)
                if replaces { try FileManager.default.copyItem(atPath: aside, toPath: file) }
                let error = code { () throws(StoreError) in try store.write([sample]) }
                #expect(error?.code == .gone && error?.description.contains(file) == true)
                #expect(error?.description.contains("Put the file back") == true)
                #expect(code { () throws(StoreError) in try store.probe() }?.code == .gone)
                try? FileManager.default.removeItem(atPath: file)
                try FileManager.default.moveItem(atPath: aside, toPath: file)
                #expect(code { () throws(StoreError) in try store.probe() } == nil)
                #expect(try store.read().invites.isEmpty, "what was refused was not written either")
                #expect(code { () throws(StoreError) in try store.write([sample]) } == nil)
                #expect(try store.read().invites.count == 1)
            }
        }
    }

    @Test("A database or log that was moved, with a link to it in its place, is not where it was")
    func movedBehindLink() throws {
        for ending in ["", "-wal"] {
            let (folder, other) = (try Folder(), try Folder())
            let store = try ExchangeStore.open(path: folder.database)
            defer { store.close() }
            try store.write([.sessionForgotten("none")])
            let (file, target) = (folder.database + ending, other.database + ending)
            try FileManager.default.moveItem(atPath: file, toPath: target)
            try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: target)
            do throws(StoreError) {
                try store.write([.invite(Sample.invite(at: ScriptedClock().now))])
                Issue.record("it was written")
            } catch {
                #expect(error.code == .gone && error.description.contains(file))
            }
            try FileManager.default.removeItem(atPath: file)
            try FileManager.default.moveItem(atPath: target, toPath: file)
            #expect(throws: Never.self) { try store.probe() }
            #expect(try store.read().invites.isEmpty)
        }
    }

    @Test("A database that is named by a link is the file itself: its log is watched beside that")
    func goneBehindLink() throws {
        let (folder, other) = (try Folder(), try Folder())
        try FileManager.default.createSymbolicLink(atPath: folder.database, withDestinationPath: other.database)
        try ExchangeStore.open(path: other.database).close()
        let store = try ExchangeStore.open(path: folder.database)
        defer { store.close() }
        try store.write([.sessionForgotten("none")])
        try FileManager.default.removeItem(atPath: other.database + "-wal")
        #expect(throws: StoreError.self) { try store.write([.sessionForgotten("none")]) }
    }

    @Test(
        "INV-16: Behind a link a damaged database is set aside, not the link, and the new one is locked by every name")
    func setAsideBehindLink() throws {
        let (folder, other) = (try Folder(), try Folder())
        try FileManager.default.createSymbolicLink(atPath: folder.database, withDestinationPath: other.database)
        try Data(String(repeating: "This is no database. ", count: 500).utf8).write(
            to: URL(fileURLWithPath: other.database))
        let store = try ExchangeStore.open(path: folder.database, ifCorrupt: .setAside)
        defer { store.close() }
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder.database) == other.database)
        #expect(try #require(store.setAside).contains(".corrupt-"))
        for name in [folder.database, other.database] { #expect(code(opening: name) == .inUse) }
    }

    @Test("A database that a newer version has changed is refused, and left as it is")
    func newer() throws {
        let folder = try Folder()
        try ExchangeStore.open(path: folder.database).close()
        try damage("INSERT INTO grdb_migrations VALUES ('99 days to come')", in: folder)
        #expect(code(opening: folder.database, ifCorrupt: .setAside) == .newer)
        let later = try SQLiteDatabase(path: folder.database)
        defer { later.close() }
        #expect(try later.read { try $0.firstValue(of: "SELECT runs FROM exchange") } == .integer(1))
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
        try damage("UPDATE invites SET invitees = '!' || invitees", in: folder)
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

    /// Does something to the tables that no exchange does.
    private func damage(_ sql: String, in folder: Folder) throws {
        let database = try SQLiteDatabase(path: folder.database)
        defer { database.close() }
        try database.write { try $0.execute(sql) }
    }

    @Test("A row with a text that is no JSON and would be put into messages is set aside, and the others are good")
    func brokenJSON() throws {
        for damage in [
            "UPDATE invites SET data = '!' || data WHERE id = 'invite-1'",
            "UPDATE invites SET payload = payload || ',\"to\":1' WHERE id = 'invite-1'",
            "UPDATE invites SET timeout_payload = '' WHERE id = 'invite-1'",
            "UPDATE pushes SET payload = payload || '}' WHERE id = 'p'",
        ] {
            let folder = try Folder()
            let store = try ExchangeStore.open(path: folder.database)
            let now = ScriptedClock().now
            var other = Sample.invite(at: now)
            (other.id, other.idempotencyKey) = ("invite-2", "k2")
            try store.write([
                .invite(Sample.invite(at: now)), .invite(other), .push(Sample.push("p", at: now)),
                .push(Sample.push("q", at: now)),
            ])
            store.close()
            try self.damage(damage, in: folder)
            let opened = try ExchangeStore.open(path: folder.database)
            let saved = try opened.read()
            let isPush = damage.contains("pushes")
            #expect(saved.invites.map(\.id) == (isPush ? ["invite-1", "invite-2"] : ["invite-2"]))
            #expect(saved.pendingPushes.map(\.id) == (isPush ? ["q"] : ["p", "q"]))
            #expect(opened.setAsideRows.map(\.table) == [isPush ? "pushes" : "invites"])
            #expect(opened.setAsideRows.first?.count == 1)
            #expect(opened.setAsideRows.first?.reason.hasSuffix("is no JSON") == true)
            opened.close()
            let again = try ExchangeStore.open(path: folder.database)
            #expect(again.setAsideRows.isEmpty, "it is told once")
            again.close()
        }
    }

    @Test("Text that is taken from disk is JSON in the middle of other text as well, or is not taken")
    func splicedJSON() throws {
        let texts = [
            "1", " 1\n", "\u{FEFF}1", "1\u{0}", "\u{0}1", "{\"a\":[1]}", "{\u{0}\"\u{0}a\u{0}\"\u{0}:\u{0}1\u{0}}\u{0}",
            "1,2", "1]", "[1", "", " ", "\"\u{1}\"", "01", "+1", "1.", "nan", "// 1", "'a'", "{a:1}", "[1,]",
            "\"\\ud800\"",
        ]
        for text in texts {
            guard let kept = try? KeptJSON(text: text) else { continue }
            let message = Data(#"{"data":\#(kept.text),"n":1}"#.utf8)
            let read = try JSONSerialization.jsonObject(with: message) as? [String: Any]
            #expect(read?.count == 2, "\(text.debugDescription)")
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
