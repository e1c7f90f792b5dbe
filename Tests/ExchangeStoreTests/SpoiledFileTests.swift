import ExchangeCore
import Foundation
import Glibc
import SignalWire
import Testing

@testable import ExchangeServer

/// Another program cuts or overwrites the files of a database that is open.
@Suite struct SpoiledFileTests {
    private func error(_ work: () throws(StoreError) -> Void) -> StoreError? {
        do throws(StoreError) { try work() } catch { return error }
        return nil
    }

    private func writeEvents(_ numbers: ClosedRange<UInt64>, _ store: ExchangeStore) throws {
        let now = ScriptedClock().now
        for number in numbers {
            try store.write([.event(Sample.event(number, at: now, for: .device("b")))])
        }
    }

    /// What another program does to a file.
    enum Deed: CaseIterable, Sendable {
        case empty, cut, overwriteFront, overwriteMiddle, append

        func done(to file: String) throws {
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: file))
            defer { try? handle.close() }
            let length = try handle.seekToEnd()
            let rubbish = Data(repeating: 0x5A, count: 600)
            switch self {
            case .empty: try handle.truncate(atOffset: 0)
            case .cut: try handle.truncate(atOffset: length / 2)
            case .overwriteFront:
                try handle.seek(toOffset: 0)
                try handle.write(contentsOf: rubbish)
            case .overwriteMiddle:
                try handle.seek(toOffset: length / 2)
                try handle.write(contentsOf: rubbish)
            case .append: try handle.write(contentsOf: rubbish)
            }
        }
    }

    @Test(
        "A database or log that another program cuts or writes to is written no more, and the error names it",
        arguments: ["", "-wal"], Deed.allCases)
    func spoiled(_ ending: String, _ deed: Deed) throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        defer { store.close() }
        try writeEvents(1...20, store)
        let file = folder.database + ending
        try deed.done(to: file)
        // The system's clock of files is coarse: this is as if the other program came later.
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: 5)], ofItemAtPath: file)
        for _ in 0..<2 {
            let refusal = error { () throws(StoreError) in try store.write([.sessionForgotten("none")]) }
            #expect(refusal?.code == .spoiled && refusal?.description.contains("\(file),") == true)
        }
        #expect(error { () throws(StoreError) in try store.probe() }?.code == .spoiled)
    }

    @Test(
        "What another program does while a commit is under way is found behind it",
        arguments: [
            ("", Deed.empty), ("", .cut), ("", .append), ("-wal", .empty), ("-wal", .cut), ("-wal", .overwriteFront),
        ])
    func meanwhile(_ ending: String, _ deed: Deed) throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        try writeEvents(1...20, store)
        store.close()
        let database = try SQLiteDatabase(path: folder.database)
        defer { database.close() }
        try database.withConnection { connection in
            connection.countLogFrames()
            func write() throws { try connection.run("UPDATE exchange SET probed = probed + 1") }
            for _ in 0..<5 { try write() }
            var files = try OpenFiles(folder.database, frames: connection.logFrames, openedAs: folder.database)
            try files.check()
            try write()
            try files.noteCommit(frames: connection.logFrames)
            try files.check()
            try deed.done(to: folder.database + ending)
            try write()
            do throws(StoreError) {
                try files.noteCommit(frames: connection.logFrames)
                Issue.record("it was not found")
            } catch {
                #expect(error.code == .spoiled && error.description.contains(folder.database + ending))
            }
        }
    }

    @Test("A log that was overwritten without a trace in its length and age is found before it is copied back")
    func unseen() throws {
        let folder = try Folder()
        let store = try ExchangeStore.open(path: folder.database)
        defer { store.close() }
        try writeEvents(1...20, store)
        let file = folder.database + "-wal"
        var status = stat()
        try #require(stat(file, &status) == 0)
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: file))
        try handle.seek(toOffset: 32 + 3 * 4_120 + 1_000)
        try handle.write(contentsOf: Data([0x5A, 0x5A, 0x5A, 0x5A]))
        try handle.close()
        var times = [status.st_mtim, status.st_mtim]
        try #require(utimensat(AT_FDCWD, file, &times, 0) == 0)
        var refusal: StoreError?
        for number in 21...600 where refusal == nil {
            refusal = error { () throws(StoreError) in
                try store.write([.event(Sample.event(UInt64(number), at: ScriptedClock().now, for: .device("b")))])
            }
        }
        #expect(refusal?.code == .spoiled && refusal?.description.contains(file) == true)
    }

    @Test("An exchange's own commits, its copying back of the log, and readers spoil nothing")
    func unspoiled() throws {
        let folder = try Folder()
        var store = try ExchangeStore.open(path: folder.database)
        try writeEvents(1...400, store)
        let reader = try SQLiteDatabase(path: folder.database)
        let count = "SELECT count(*) FROM events"
        #expect(try reader.read { try $0.firstValue(of: count) } == .integer(400))
        try reader.withConnection { connection in
            // A backup that takes its time.
            try connection.execute("BEGIN")
            #expect(try connection.firstValue(of: count) == .integer(400))
            try writeEvents(401...800, store)
            #expect(try connection.firstValue(of: count) == .integer(400))
            try connection.execute("COMMIT")
        }
        reader.close()
        try writeEvents(801...1_200, store)
        let log = try FileManager.default.attributesOfItem(atPath: folder.database + "-wal")[.size] as? Int ?? 0
        #expect(log <= 4_194_304, "it was copied back, and has begun again")
        try store.probe()
        store.close()
        store = try ExchangeStore.open(path: folder.database)
        defer { store.close() }
        #expect(try store.read().events.count == 1_200)
        try writeEvents(1_201...1_202, store)
    }
}
