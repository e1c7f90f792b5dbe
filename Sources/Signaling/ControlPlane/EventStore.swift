internal import BlockingWork
package import ControlWire
package import Core
internal import Files
package import Logging
internal import Realtime
internal import Synchronization

/// The history of a process's events: in memory for clients, and on disk if there is a folder.
///
/// An event is in memory when ``add(_:)`` returns. A thread of its own writes it to disk afterwards, and reads the history like a client: if
/// the disk is slow, further events wait in the history, which is bounded. What the disk has not taken before it is dropped there is a
/// gap after a restart. If the folder cannot be used, it is tried again with the next event, and the events so far move there.
package final class EventStore: Sendable {
    private struct State {
        var history: EventHistory
        /// Nil without a folder, and as long as the folder could not be used.
        var journal: EventJournal?
        /// The newest position on disk.
        var written: UInt64
        var isWriting = false
        var isWaking = false
        var wake: (@Sendable () -> Void)?
        var wakeWebhooks: (@Sendable () -> Void)?
        var failures = OutageLimit()
        var hasFailed = false
        /// Writes that failed.
        var failedWrites = 0

        init(_ history: EventHistory, _ journal: EventJournal? = nil) {
            (self.history, self.journal) = (history, journal)
            written = history.origin
        }
    }

    /// Events that are written at once.
    private static let batch = 256
    /// For the disk, at the end of the process.
    package static let endPatience = Duration.seconds(2)

    private let state: Mutex<State>
    private let folder: String?
    /// One, so that batches are written in order.
    private let thread = BlockingThreads(name: "events", most: 1)
    private let logger: Logger

    private init(_ state: State, folder: String?, _ logger: Logger) {
        self.state = Mutex(state)
        self.folder = folder
        self.logger = logger
    }

    /// Opens the history of a folder. If the folder cannot be used, the log has the reason, and events are kept in memory until it can.
    package static func open(folder: String?, logger: Logger) async -> EventStore {
        let memory = State(EventHistory(id: newID))
        guard let folder else { return EventStore(memory, folder: nil, logger) }
        do throws(PrivateFileError) {
            let journal = try await BlockingThreads.files.run { () throws(PrivateFileError) in
                try EventJournal(folder: folder, newID: newID)
            }
            let history = EventHistory(id: journal.id, run: journal.run, after: journal.archive)
            return EventStore(State(history, journal), folder: folder, logger)
        } catch {
            let store = EventStore(memory, folder: folder, logger)
            store.report(error)
            return store
        }
    }

    private static var newID: UInt64 { UInt64.random(in: 1...(.max)) }

    /// Calls `wake` after new events; several may come together.
    package func onEvents(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

    /// Calls `wake` after each event.
    package func onEachEvent(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wakeWebhooks = wake } }

    /// Reads the history.
    package func read<Value: Sendable>(_ body: (borrowing EventHistory) -> Value) -> Value {
        state.withLock { body($0.history) }
    }

    /// Moves a client's reader on.
    package func next(_ reader: inout EventReader, at now: Instant) -> [UInt8] {
        state.withLock { state in
            state.isWaking = false
            return reader.next(of: state.history, at: now)
        }
    }

    /// The cursor of the newest event; nil as long as the history is not on disk.
    package var durableCursor: EventCursor? { state.withLock { $0.journal == nil ? nil : $0.history.cursor } }

    /// Writes to the folder that failed since the start: of events, and of what webhooks have delivered.
    package var failedWrites: Int { state.withLock { $0.failedWrites } }

    /// Counts a write to the folder by another one that failed.
    package func countFailedWrite() { state.withLock { $0.failedWrites += 1 } }

    /// Moves a webhook on.
    package func next(_ course: inout WebhookCourse, at now: Instant) -> WebhookCourse.Delivery? {
        state.withLock { course.next(of: $0.history, at: now) }
    }

    /// Adds an event.
    package func add(_ line: [UInt8]) {
        let (wake, wakeWebhooks, starts) = state.withLock { state in
            state.history.add(line)
            let wake = state.isWaking ? nil : state.wake
            state.isWaking = true
            let starts = folder != nil && !state.isWriting
            if starts { state.isWriting = true }
            return (wake, state.wakeWebhooks, starts)
        }
        wake?()
        wakeWebhooks?()
        if starts { Task { await write() } }
    }

    /// The clients have been woken.
    package func woken() { state.withLock { $0.isWaking = false } }

    /// Writes what is not on disk yet, and that the run has ended; waits no longer than `patience`.
    package func close(within patience: Duration = EventStore.endPatience) async {
        guard folder != nil else { return }
        let (ends, end) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        Task {
            await thread.run { self.finish() }
            end.yield()
        }
        Task {
            try? await Task.sleep(for: patience)
            end.yield()
        }
        for await _ in ends { break }
    }

    // MARK: On the thread of the disk

    private func write() async { await thread.run { while self.writeBatch() {} } }

    /// Writes some events; false if there are none, or the disk does not take them: they are tried again with the next event.
    private func writeBatch() -> Bool {
        do throws(PrivateFileError) {
            guard let journal = try openJournal() else { return false }
            let batch = state.withLock { state in
                let batch = Array(state.history.events(after: state.written, atMost: Self.batch))
                if batch.isEmpty { state.isWriting = false }
                return batch
            }
            guard let last = batch.last else { return false }
            try journal.append(batch.map(EventArchive.line))
            note(written: last.position)
            return true
        } catch {
            report(error)
            return false
        }
    }

    /// The journal, which is opened if it could not be before, and then continues with the events so far.
    private func openJournal() throws(PrivateFileError) -> EventJournal? {
        if let known = state.withLock({ $0.journal }) { return known }
        guard let folder else { return nil }
        let journal = try EventJournal(folder: folder, newID: Self.newID)
        state.withLock { state in
            state.history.resume(journal.id, run: journal.run, after: journal.archive)
            (state.journal, state.written) = (journal, state.history.origin)
        }
        return journal
    }

    private func finish() {
        while writeBatch() {}
        let (journal, end) = state.withLock { state in
            (state.journal, state.written == state.history.newest ? state.written : nil)
        }
        guard let journal, let end else { return }
        do throws(PrivateFileError) { try journal.append([EventArchive.end(end)]) } catch { report(error) }
    }

    private func note(written position: UInt64) {
        let isBack = state.withLock { state in
            state.written = position
            guard state.hasFailed else { return false }
            state.hasFailed = false
            state.failures.end()
            return true
        }
        if isBack { logger.notice("Events are on disk again") }
    }

    private func report(_ error: PrivateFileError) {
        let leftOut = state.withLock { state in
            (state.isWriting, state.hasFailed) = (false, true)
            state.failedWrites += 1
            return state.failures.admit(at: MonotonicClock.now)
        }
        guard let leftOut else { return }
        logger.error(
            "Events are not on disk; they are tried again with the next event",
            metadata: ["error": "\(error)", "left_out": "\(leftOut)"])
    }
}

/// The folder of a history: `history` with its id and the number of the run, and `events.log` with the older `events.log.1` and so on. For
/// one process; calls block.
final class EventJournal: Sendable {
    /// Bytes in one file, and older files: 10 MiB in all.
    static let fileBytes = 2 << 20
    static let olderFiles = 4

    /// Which history it is.
    let id: UInt64
    /// How often a device has started with it.
    let run: UInt64
    /// What earlier runs have kept.
    let archive: EventArchive
    private let lock: LockFile
    private let lines: LineJournal

    /// Opens a folder, which is made if it is missing, and begins a run.
    init(folder: String, newID: UInt64) throws(PrivateFileError) {
        // If it cannot be made, the lock's error says so.
        try? WritableFolder.make(folder)
        lock = try LockFile("\(folder)/lock")
        let lines = try LineJournal(
            path: "\(folder)/events.log", maximumBytes: Self.fileBytes, keptFiles: Self.olderFiles)
        let path = "\(folder)/history"
        let former = Self.history(try PrivateFile.read(path)).flatMap { $0.runs + 1 < EventArchive.mostRuns ? $0 : nil }
        (id, run) = former.map { ($0.id, $0.runs + 1) } ?? (newID, 1)
        if former == nil { try lines.clear() }
        // A full disk is noticed here, before all events are read.
        try PrivateFile.replace(path, with: Array("\(Hexadecimal.text(of: id)) \(run)\n".utf8))
        archive = former == nil ? EventArchive() : EventArchive(try lines.lines())
        try lines.append([EventArchive.run(run)])
        self.lines = lines
    }

    /// Adds lines, and returns when they are on disk.
    func append(_ lines: [String]) throws(PrivateFileError) { try self.lines.append(lines) }

    private static func history(_ bytes: [UInt8]?) -> (id: UInt64, runs: UInt64)? {
        let parts = String(decoding: bytes ?? [], as: UTF8.self).split { $0 == " " || $0 == "\n" }
        guard parts.count == 2, let id = UInt64(parts[0], radix: 16), let runs = UInt64(parts[1]) else { return nil }
        return (id, runs)
    }
}
