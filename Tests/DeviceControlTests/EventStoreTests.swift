import ControlWire
import Core
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import ControlPlane

@Suite("Events on disk", .timeLimit(.minutes(1)))
struct EventStoreTests {
    /// Keeps the messages of a log.
    private struct Messages: LogHandler {
        final class Kept: Sendable {
            private let messages = Mutex<[String]>([])
            func add(_ message: String) { messages.withLock { $0.append(message) } }
            func count(_ message: String) -> Int { messages.withLock { $0.count { $0 == message } } }
        }

        let kept: Kept
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { kept.add("\(event.message)") }
    }

    private static let failed = "Events are not on disk; they are tried again with the next event"
    private static let recovered = "Events are on disk again"

    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("events-\(UUID())").path
    private let messages = Messages.Kept()
    private let logger: Logger

    init() {
        let kept = messages
        logger = Logger(label: "events") { _ in Messages(kept: kept) }
    }

    private func line(_ call: UInt64) -> [UInt8] { ControlCoding.line(.answered(call: call), atMilliseconds: 1) }

    private func remove() { try? FileManager.default.removeItem(atPath: folder) }

    /// The text that a client receives that begins somewhere.
    private func text(_ store: EventStore, _ start: EventSubscription.Start) -> String {
        var reader = store.read { EventReader(EventSubscription(start: start), of: $0) }
        return String(decoding: store.next(&reader, at: .init(nanoseconds: 0)), as: UTF8.self)
    }

    private func onDisk() -> String { (try? String(contentsOfFile: folder + "/events.log", encoding: .utf8)) ?? "" }

    /// Puts a folder in the place of the log, which nothing can be written to, or removes it.
    private func block(_ isBlocked: Bool) throws {
        let (log, kept) = (folder + "/events.log", folder + "/kept")
        if isBlocked {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try? FileManager.default.moveItem(atPath: log, toPath: kept)
            try FileManager.default.createDirectory(atPath: log, withIntermediateDirectories: false)
        } else {
            try FileManager.default.removeItem(atPath: log)
            try? FileManager.default.moveItem(atPath: kept, toPath: log)
        }
    }

    @Test("A folder is read again when its process is gone: events are there, under the same history, without a gap")
    func restart() async throws {
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

    @Test(
        "A folder that another process has is used when that one is gone, behind its events, and cursors remain valid")
    func locked() async throws {
        defer { remove() }
        var first: EventStore? = await EventStore.open(folder: folder, logger: logger)
        first?.add(line(1))
        let known = try #require(first).read { $0.cursor }
        let second = await EventStore.open(folder: folder, logger: logger)
        #expect(messages.count(Self.failed) == 1)
        second.add(line(2))
        let before = second.read { $0.cursor }
        #expect(before.history != known.history)
        var reader = second.read { EventReader(EventSubscription(start: .after(before)), of: $0) }
        await first?.close(within: .seconds(50))
        first = nil
        var call: UInt64 = 3
        try await until {
            second.add(line(call))
            call += 1
            return second.read { $0.cursor.history } == known.history
        }
        await second.close(within: .seconds(50))
        let all = text(second, .oldest)
        #expect(all.contains("\"call\":1,") && all.contains("\"call\":2,") && !all.contains("gap"), "\(all)")
        let open = String(decoding: second.next(&reader, at: .zero), as: UTF8.self)
        for received in [text(second, .after(before)), open] {
            #expect(received.contains("\"call\":3,") && !received.contains("\"call\":2,"), "\(received)")
            #expect(!received.contains("gap"))
        }
        #expect(onDisk().contains("\"call\":2,") && onDisk().hasSuffix("end \(second.read { $0.newest })\n"))
        #expect(messages.count(Self.recovered) == 1)
    }

    @Test("A disk that takes nothing at the start keeps no event in memory for longer than it lasts")
    func fullAtStart() async throws {
        defer { remove() }
        try block(true)
        let store = await EventStore.open(folder: folder, logger: logger)
        #expect(messages.count(Self.failed) == 1)
        store.add(line(1))
        #expect(text(store, .oldest).contains("\"call\":1,"))
        try block(false)
        store.add(line(2))
        try await until {
            // A try may have begun before there was room.
            if onDisk().contains("\"call\":2,") { return true }
            store.add(line(3))
            return false
        }
        #expect(onDisk().contains("\"call\":1,"))
        await store.close(within: .seconds(50))
        #expect(onDisk().hasSuffix("end \(store.read { $0.newest })\n") && messages.count(Self.recovered) == 1)
    }

    @Test("A disk that takes nothing stops no event, and what it missed is there later")
    func fullDisk() async throws {
        defer { remove() }
        let store = await EventStore.open(folder: folder, logger: logger)
        try block(true)
        store.add(line(1))
        store.add(line(2))
        #expect(text(store, .oldest).contains("\"call\":2,"))
        try await until { messages.count(Self.failed) == 1 }
        try block(false)
        store.add(line(3))
        await store.close(within: .seconds(50))
        let lines = onDisk()
        for call in 1...3 { #expect(lines.contains("\"call\":\(call),"), "\(lines)") }
        #expect(lines.hasSuffix("end \(store.read { $0.newest })\n") && messages.count(Self.recovered) == 1)
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
