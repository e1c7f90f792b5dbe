import ControlWire
import Core
import Foundation
import Logging
import TestSupport
import Testing

@testable import DeviceControl

@Suite("Events on disk", .timeLimit(.minutes(1)))
struct EventStoreTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("events-\(UUID())").path
    private let logger = Logger(label: "events") { _ in SwiftLogNoOpLogHandler() }

    private func line(_ call: UInt64) -> [UInt8] { ControlCoding.line(.answered(call: call), atMilliseconds: 1) }

    private func remove() { try? FileManager.default.removeItem(atPath: folder) }

    /// The text that a client receives that begins somewhere.
    private func text(_ store: EventStore, _ start: EventSubscription.Start) -> String {
        var reader = store.read { EventReader(EventSubscription(start: start), of: $0) }
        return String(decoding: store.next(&reader, at: .init(nanoseconds: 0)), as: UTF8.self)
    }

    @Test("Events are there after a restart, under the same history, without a gap")
    func restart() async {
        defer { remove() }
        let first = await EventStore.open(folder: folder, logger: logger)
        for call in 1...300 { first.add(line(UInt64(call))) }
        let cursor = first.read { $0.cursor }
        await first.close()
        let locked = await EventStore.open(folder: folder, logger: logger)
        // The first still has the folder, so this one keeps its events in memory.
        #expect(locked.read { $0.cursor.history } != cursor.history)
        withExtendedLifetime(first) {}
    }

    @Test("A folder is read again when its process is gone")
    func again() async throws {
        defer { remove() }
        var first: EventStore? = await EventStore.open(folder: folder, logger: logger)
        for call in 1...300 { first?.add(line(UInt64(call))) }
        let cursor = first?.read { $0.cursor }
        await first?.close(within: .seconds(50))
        first = nil
        var second = await EventStore.open(folder: folder, logger: logger)
        // The thread that closed it may hold it for a moment.
        try await until {
            if second.read({ $0.cursor.history }) == cursor?.history { return true }
            second = await EventStore.open(folder: folder, logger: logger)
            return false
        }
        let text = text(second, .oldest)
        #expect(text.contains("\"call\":1,") && text.contains("\"call\":300,") && !text.contains("gap"))
    }

    @Test("A disk that takes nothing stops no event, and what it missed is there later")
    func fullDisk() async throws {
        defer { remove() }
        let store = await EventStore.open(folder: folder, logger: logger)
        let log = folder + "/events.log"
        let kept = folder + "/kept"
        try FileManager.default.moveItem(atPath: log, toPath: kept)
        try FileManager.default.createDirectory(atPath: log, withIntermediateDirectories: false)
        store.add(line(1))
        store.add(line(2))
        #expect(text(store, .oldest).contains("\"call\":2,"))
        try FileManager.default.removeItem(atPath: log)
        try FileManager.default.moveItem(atPath: kept, toPath: log)
        store.add(line(3))
        await store.close()
        let lines = try String(contentsOfFile: log, encoding: .utf8)
        for call in 1...3 { #expect(lines.contains("\"call\":\(call),"), "\(lines)") }
        #expect(lines.hasSuffix("end \(store.read { $0.newest })\n"))
    }

    @Test("Files of a history are their owner's alone")
    func modes() async throws {
        defer { remove() }
        let store = await EventStore.open(folder: folder, logger: logger)
        store.add(line(1))
        await store.close()
        for name in ["", "/events.log", "/history", "/lock"] {
            let mode = try FileManager.default.attributesOfItem(atPath: folder + name)[.posixPermissions] as? Int
            #expect((mode ?? 0o777) & 0o077 == 0, "\(name)")
        }
    }
}
