internal import ExchangeCore
internal import Files

/// The files of an open database, as the exchange left them: what SQLite writes to.
///
/// The system allows a file to be deleted, moved, cut or overwritten while a process has it open, and SQLite does not check for that.
/// Writes then still succeed, and their data is lost at the next restart. A file that was moved may come back. After another program has
/// written to one, the exchange does not know what a restart would find, so that nothing more is written.
struct OpenFiles: ~Copyable {
    /// Pages that the log may have before they are copied back.
    ///
    /// Commits wait while a log is copied back: half of SQLite's usual 1,000 pages halves that wait, and under load the 99th percentile
    /// falls from 8 to 6 ms (docs/load.md). Fewer pages cost throughput.
    private static let checkpointFrames = 500

    /// That by which the database was opened; it may be a link.
    private let path: String
    private let link: (path: String, identity: FileIdentity)?
    private var database: Entry
    private var logEntry: Entry
    private var log: WriteAheadLog
    /// What another program has done; it does not become undone.
    private var fault: StoreError?

    private struct Entry {
        let path: String
        var stamp: FileStamp
    }

    /// Notes the files of an open database: itself, and its write-ahead log.
    ///
    /// - Parameters:
    ///   - own: Where SQLite has it: links are followed, and the log is beside the file itself.
    ///   - frames: Those that the log has. The database was written to, so that there is one.
    ///   - path: That by which it was opened, not that of a link.
    init(_ own: String, frames: Int, openedAs path: String) throws(StoreError) {
        func entry(_ file: String) throws(StoreError) -> Entry {
            guard let stamp = FileStamp(entry: file) else { throw StoreError(gone: file, path) }
            return Entry(path: file, stamp: stamp)
        }
        let (database, logEntry) = (try entry(own), try entry(own + "-wal"))
        let log = try WriteAheadLog(path: own + "-wal", frames: frames)
        self.path = path
        link = own == path ? nil : FileIdentity(entry: path).map { (path, $0) }
        self.database = database
        self.logEntry = logEntry
        self.log = log
    }

    /// Finds out whether the files are where they were, and as they were. It takes some microseconds.
    ///
    /// A link to where one was moved is not the file: after a restart SQLite looks for the log beside the moved one.
    ///
    /// - Throws: ``StoreError`` with the code `gone` if one is not there, and `spoiled` if another program has written to one.
    mutating func check() throws(StoreError) {
        try checkPlaces()
        for entry in [database, logEntry] where FileStamp(entry: entry.path) != entry.stamp {
            throw spoil(entry.path)
        }
    }

    /// Finds out after a commit whether only that has changed the files.
    ///
    /// - Parameter frames: Those that the log has now.
    mutating func noteCommit(frames: Int) throws(StoreError) {
        try checkPlaces()
        guard FileStamp(entry: database.path) == database.stamp else { throw spoil(database.path) }
        guard let stamp = FileStamp(entry: logEntry.path), log.noteCommit(frames: frames, bytes: stamp.measure.bytes)
        else { throw spoil(logEntry.path) }
        logEntry.stamp = stamp
    }

    /// Notes that a commit has failed, which may have written to the log. Whether another program has is found by the next commit.
    mutating func noteFailedCommit() {
        if let stamp = FileStamp(entry: logEntry.path), stamp.identity == logEntry.stamp.identity {
            logEntry.stamp = stamp
        }
    }

    /// Reads the whole log from time to time, before it is copied back.
    ///
    /// - Returns: Whether it was read.
    mutating func verifyLog() throws(StoreError) -> Bool {
        guard log.framesSinceVerified >= Self.checkpointFrames else { return false }
        guard log.verify() else { throw spoil(logEntry.path) }
        return true
    }

    /// Notes how the log, copied back, has left the files. The database never shrinks by that.
    mutating func noteCheckpoint() throws(StoreError) {
        try checkPlaces()
        guard let stamp = FileStamp(entry: database.path), let logStamp = FileStamp(entry: logEntry.path),
            stamp.measure.bytes >= database.stamp.measure.bytes
        else { throw spoil(database.path) }
        (database.stamp, logEntry.stamp) = (stamp, logStamp)
    }

    /// Whether a restart would find in the files what was written: they are where they were, no other program has written to one, and all
    /// of the log can be read.
    mutating func isWhole() -> Bool {
        do {
            try check()
            return log.verify()
        } catch {
            return false
        }
    }

    private mutating func spoil(_ file: String) -> StoreError {
        let error = StoreError(spoiled: file, path)
        fault = error
        return error
    }

    private func checkPlaces() throws(StoreError) {
        if let fault { throw fault }
        if let link, FileIdentity(entry: link.path) != link.identity { throw StoreError(gone: link.path, path) }
        for entry in [database, logEntry] where FileStamp(entry: entry.path)?.identity != entry.stamp.identity {
            throw StoreError(gone: entry.path, path)
        }
    }
}
