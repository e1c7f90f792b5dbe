internal import ExchangeCore
internal import Glibc
internal import Files
internal import Synchronization
import Core

/// The database's files.
enum StoreFiles {
    /// Makes the file with access for its owner only; SQLite creates the log with the same rights. On a file that
    /// exists already, the rights of others are removed, and so are those to its log.
    ///
    /// - Returns: The files that others had rights to.
    static func make(_ path: String) throws(StoreError) -> [String] {
        do throws(SystemError) {
            _ = try OpenFile(path, O_CREAT | O_EXCL | O_WRONLY)
            return []
        } catch {
            guard error.code == EEXIST else { throw notReachable(path, error.code) }
        }
        do throws(RegularFileError) {
            // Not opened: closing a second descriptor would drop SQLite's locks.
            try RegularFile.check(path)
        } catch {
            throw StoreError(
                .notReachable, "cannot open the database \(path): \(error.message). Name a file, which need not exist.")
        }
        var opened: [String] = []
        do throws(OthersRights.Failure) {
            // A link of another user is refused.
            _ = try OthersRights.target(of: path)
            for file in [path, path + "-wal", path + "-shm", path + ".lock"] where try OthersRights.remove(from: file) {
                opened.append(file)
            }
        } catch {
            throw notProtected(error)
        }
        return opened
    }

    /// Finds out whether a file is there that may be read, for those who read a database and do not make one.
    static func checkReadable(_ path: String) throws(StoreError) {
        do throws(RegularFileError) {
            try RegularFile.check(path)
            try RegularFile.checkAccess(path, R_OK)
        } catch {
            throw StoreError(
                .notReachable,
                "cannot read the database \(path): \(error.message). Name the file that `database` names in the "
                    + "exchange's configuration.")
        }
    }

    /// Whether the file that is to be a database can be one: it is not there, is empty, or begins as those of SQLite do.
    ///
    /// Before the database is open, because closing a second descriptor would drop SQLite's locks.
    static func canBeDatabase(_ path: String) -> Bool {
        guard let file = try? RegularFile.open(path, O_RDONLY) else { return true }
        let magic = Array("SQLite format 3\0".utf8)
        var bytes = [UInt8](repeating: 0, count: magic.count)
        guard let count = try? file.read(into: &bytes), count > 0 else { return true }
        return bytes == magic
    }

    private static func notProtected(_ failure: OthersRights.Failure) -> StoreError {
        let advice =
            switch failure {
            case .system: "Give it to the user that runs the exchange, or run `chmod 600 \(failure.path)` as its owner."
            case .linkOfAnother: "Name the file itself."
            case .notAlone: "Copy it to a file of its own."
            case .notRegular: "Remove it."
            }
        return StoreError(
            .notReachable,
            "cannot open the database: cannot ensure that only its owner can read \(failure.path): "
                + "\(failure.message). \(advice)")
    }

    /// Renames a damaged database, with its log.
    ///
    /// - Returns: Its new path.
    static func setAside(_ path: String, at time: WallClock) throws(StoreError) -> String {
        let aside = "\(path).corrupt-\(time.unixMilliseconds)"
        for ending in ["-wal", "-shm", ""] where unsafe rename(path + ending, aside + ending) != 0 {
            let code = errno
            guard ending.isEmpty || code != ENOENT else { continue }
            throw StoreError(
                code == ENOENT ? .notReachable : .failed,
                "cannot rename the damaged database \(path) to \(aside): \(SystemError(code)). Move it away by hand.")
        }
        return aside
    }

    static func notReachable(_ path: String, _ code: Int32) -> StoreError {
        switch code {
        case EROFS, EACCES, EPERM:
            StoreError(
                .readOnly,
                "cannot open the database \(path): \(SystemError(code)). Mount the disk for writing, and give the user that "
                    + "runs the exchange the right to write the file and its folder.")
        case ENOSPC:
            StoreError(.full, "cannot open the database \(path): \(SystemError(code)). Make room on the disk.")
        default:
            StoreError(
                .notReachable,
                "cannot open the database \(path): \(SystemError(code)). The folder must exist, and the user that runs "
                    + "the exchange must be able to write to it.")
        }
    }

    /// Whether the disk of the database is read-only. The system makes a failing disk read-only by itself, and may
    /// report that only to a process that opens a file.
    static func isOnReadOnlyDisk(_ path: String) -> Bool {
        // Not the database itself: closing a second descriptor would drop SQLite's locks.
        do throws(SystemError) {
            _ = try OpenFile(path + ".lock", O_RDWR | O_NOFOLLOW)
            return false
        } catch {
            return error.code == EROFS
        }
    }
}

/// Keeps a second exchange away from a database: a lock on a file beside it, which ends with the process.
final class StoreLock: Sendable {
    /// nil once it is released.
    private let file: Mutex<OpenFile?>

    /// - Parameter path: The file itself, not a link to it: two names of one file are one database.
    init(path: String) throws(StoreError) {
        // Not on the database itself: closing any descriptor of that would drop SQLite's own locks.
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(path + ".lock", O_CREAT | O_RDWR | O_NOFOLLOW)
        } catch {
            throw StoreFiles.notReachable(path, error.code)
        }
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else {
            let error = SystemError.last
            throw StoreError(
                .inUse,
                "cannot open the database \(path): "
                    + (error.code == EWOULDBLOCK ? "another exchange uses it. " : "\(error). ")
                    + "`fuser \(path).lock` names the process; stop that one, or give this one a database of its own.")
        }
        self.file = Mutex(file)
    }

    func release() { file.withLock { $0 = nil } }

    /// Whether an exchange has the database open.
    static func isHeld(path: String) -> Bool {
        guard let file = try? OpenFile(path + ".lock", O_RDONLY | O_NOFOLLOW) else { return false }
        return flock(file.number, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }
}
