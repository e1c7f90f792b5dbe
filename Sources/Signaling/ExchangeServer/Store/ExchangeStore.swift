public import ExchangeCore
internal import CSQLite
internal import Files
internal import Core
internal import Synchronization

/// The exchange's database: one file of SQLite, with its write-ahead log beside it.
///
/// Every call waits for the disk: not for an event loop. Any thread may call; one at a time is served.
public final class ExchangeStore: StateStore {
    /// What a commit waits for.
    public enum Durability: String, CaseIterable, Sendable {
        /// For the disk: nothing is lost when the power fails.
        case full
        /// For the system: nothing is lost when the process dies; a power cut may cost the last moments.
        case normal
    }

    /// What to do with a file that is damaged.
    public enum CorruptFilePolicy: String, CaseIterable, Sendable {
        /// Not to start.
        case refuse
        /// To rename it, and start with an empty one.
        case setAside = "set_aside"
    }

    /// Where it is.
    public let path: String
    /// Where the damaged file went that was found instead, if one was.
    public let setAside: String?
    /// The files that others than their owner had rights to when the database was opened; they have none any more.
    public let wasOpenToOthers: [String]
    /// All rows that were ever set aside, if opening the database added some: they are damaged, or an earlier version wrote
    /// them that allowed more.
    public let setAsideRows: [SetAsideRows]
    private let database: SQLiteDatabase
    private let lock: StoreLock
    private let clock: StoreClock
    private let recordLimits: RecordLimits
    private let files: Mutex<OpenFiles>
    /// The oldest time, in milliseconds since 1970, of call records that are kept; `nil` once all older ones are removed.
    private let recordsBefore = Mutex<Int64?>(nil)

    /// Opens the database, making or migrating it as need be. It belongs to this exchange alone until ``close()``.
    ///
    /// - Throws: ``StoreError``.
    public static func open(
        path name: String, durability: Durability = .full, ifCorrupt: CorruptFilePolicy = .refuse,
        recordLimits: RecordLimits = RecordLimits(), clock: StoreClock = .system
    ) throws(StoreError) -> ExchangeStore {
        // Log and lock are beside the file itself, and if it is damaged, it is set aside, and not a link to it.
        let path = (try? OthersRights.target(of: name)) ?? name
        let lock = try StoreLock(path: path)
        do throws(StoreError) {
            return try ExchangeStore(path, name, lock, durability, recordLimits, clock, setAside: nil)
        } catch {
            guard error.code == .corrupt, ifCorrupt == .setAside else { throw error }
            let aside = try StoreFiles.setAside(path, at: clock.timeOfDay())
            return try ExchangeStore(path, name, lock, durability, recordLimits, clock, setAside: aside)
        }
    }

    /// - Parameter name: That by which it is known, maybe a link to `path`.
    private init(
        _ path: String, _ name: String, _ lock: StoreLock, _ durability: Durability, _ recordLimits: RecordLimits,
        _ clock: StoreClock, setAside: String?
    ) throws(StoreError) {
        self.path = path
        self.lock = lock
        self.clock = clock
        self.setAside = setAside
        self.recordLimits = recordLimits
        wasOpenToOthers = try StoreFiles.make(path)
        do {
            let database = try SQLiteDatabase(path: path)
            try database.withConnection { connection in
                let mode = try connection.firstValue(of: "PRAGMA journal_mode = WAL").text
                guard mode == "wal" else {
                    throw SQLiteFailure(
                        code: SQLITE_CANTOPEN,
                        "its file system has no write-ahead log: journal_mode is \(mode ?? "unknown")")
                }
                try connection.execute("PRAGMA synchronous = \(durability == .full ? "FULL" : "NORMAL")")
                // A log that a burst made long does not stay so.
                try connection.execute("PRAGMA journal_size_limit = 4194304")
                let verdict = try connection.firstValue(of: "PRAGMA quick_check(1)").text ?? "no answer"
                guard verdict == "ok" else { throw SQLiteFailure(code: SQLITE_CORRUPT, verdict) }
            }
            if try StoreSchema.migrations.areSuperseded(in: database) {
                throw StoreError(
                    .newer,
                    "cannot open the database \(path): a newer version of handset has changed it. Run that version, "
                        + "or put a backup from before in its place.")
            }
            let before = try database.read { try SetAsideRows.all($0) }
            try StoreSchema.migrations.migrate(database)
            try database.write { try SetAsideRows.add($0) }
            let after = try database.read { try SetAsideRows.all($0) }
            setAsideRows = after == before ? [] : after
            self.database = database
            try database.withConnection { $0.countLogFrames() }
            try database.write { [clock] connection in try StoredClock(connection: connection, clock: clock).begin() }
            // Something was written, so that the log is there.
            let (own, frames) = try database.read { connection in
                let file = "SELECT file FROM pragma_database_list WHERE name = 'main'"
                return (try connection.firstValue(of: file).text ?? path, connection.logFrames)
            }
            files = Mutex(try OpenFiles(own, frames: frames, openedAs: name))
        } catch {
            throw StoreError(error, "open", path)
        }
    }

    /// Finds out whether the file at `path` can be a database, before one is opened: it need not be there, and may be
    /// empty.
    ///
    /// - Returns: What is wrong with it and what to try, to be read after its name; nil if nothing is.
    public static func fault(ofFile path: String, ifCorrupt: CorruptFilePolicy) -> String? {
        guard !StoreFiles.canBeDatabase(path) else { return nil }
        let finding = "is not a database of SQLite"
        return switch ifCorrupt {
        case .refuse: "\(finding). \(StoreError.corruptRemedy)"
        case .setAside: "\(finding); it is renamed at the start, and an empty one takes its place"
        }
    }

    /// What is on disk.
    ///
    /// - Throws: ``StoreError``.
    public func read() throws(StoreError) -> Saved {
        do {
            return try database.read { [clock] connection in
                let times = try StoredClock(connection: connection, clock: clock).times()
                return try SavedReader(database: connection, times: times, now: clock.instant()).read()
            }
        } catch {
            throw StoreError(error, "read", path)
        }
    }

    /// Gives what `body` reads of the tables themselves.
    ///
    /// - Parameter body: Also gets how times are stored. What it throws is thrown on, and SQLite's own errors in our words.
    func reading<Value>(_ body: (SQLiteConnection, TimeMap) throws -> Value) throws -> Value {
        do {
            return try database.read { [clock] connection in
                try body(connection, try StoredClock(connection: connection, clock: clock).times())
            }
        } catch let error as SQLiteFailure {
            throw StoreError(error, "read", path)
        }
    }

    /// Writes changes in one transaction: all of them, or none. When this returns, they are on disk, in the file at
    /// ``path``.
    ///
    /// - Throws: ``StoreError``; then nothing has been written, except in a file that was moved, or written to by another program, at this
    ///   very moment.
    public func write(_ changes: [Change]) throws(StoreError) {
        try files.withLock { files throws(StoreError) in
            try files.check()
            do throws(StoreError) {
                try commit(changes)
            } catch {
                files.noteFailedCommit()
                throw error
            }
            try note(&files)
        }
    }

    private func commit(_ changes: [Change]) throws(StoreError) {
        do {
            let outdated = recordsBefore.withLock { $0 }
            let left = try database.write { [clock, recordLimits] connection in
                let removal = RecordRemoval(recordLimits, outdated: outdated)
                let writer = ChangeWriter(
                    connection: connection, times: try StoredClock(connection: connection, clock: clock).follow(),
                    recordTimes: TimeMap(offset: clock.offset), bodies: SharedBodies(changes), removal: removal)
                for change in changes { try writer.write(change) }
                try writer.removeOutdatedRecords()
                return removal.outdated
            }
            recordsBefore.withLock { $0 = left }
        } catch {
            throw StoreError(error, "write", path)
        }
    }

    /// Checks the files behind a commit, and copies the log back from time to time.
    private func note(_ files: inout OpenFiles) throws(StoreError) {
        do {
            try database.withConnection { connection in
                try files.noteCommit(frames: connection.logFrames)
                guard try files.verifyLog() else { return }
                // As with SQLite's own, a failure is no failure of the commit: the log has what was not copied.
                connection.checkpoint()
                try files.noteCheckpoint()
            }
        } catch {
            throw StoreError(error, "write", path)
        }
    }

    /// Tries whether the database can be written, by writing a number.
    ///
    /// - Throws: ``StoreError`` if not.
    public func probe() throws(StoreError) {
        try files.withLock { files throws(StoreError) in
            try files.check()
            do {
                try database.write { try $0.run("UPDATE exchange SET probed = probed + 1") }
            } catch {
                files.noteFailedCommit()
                throw StoreError(error, "write", path)
            }
            try note(&files)
        }
    }

    /// Brings the write-ahead log into the file and lets go of it. A log to which another program has written stays as it is: SQLite copies
    /// it back without looking at its checksums, and would spoil the file.
    public func close() {
        let isWhole = files.withLock { $0.isWhole() }
        if isWhole {
            // If this fails, the stored times stay valid and the log complements the file; the next process that opens it
            // continues from there.
            try? database.write { [clock] connection in
                _ = try StoredClock(connection: connection, clock: clock).follow()
            }
        } else {
            try? database.withConnection { $0.keepLogWhenClosing() }
        }
        database.close()
        lock.release()
    }
}
