internal import Glibc

/// A lock on a file for one process at a time. The file stays. The lock ends with its process.
public struct LockFile: ~Copyable, Sendable {
    private let file: OpenFile
    /// Keeps the name locked of a file that may be replaced; nil without such a lock.
    private let name: OpenFile?

    /// Locks the file at `path`, which is made if it is missing.
    ///
    /// - Parameter patience: Hundredths of a second for which the thread waits for a process that holds the lock.
    /// - Throws: ``PrivateFileError`` if another process holds the lock, or the file cannot be made.
    public init(_ path: String, patience: Int = 0) throws(PrivateFileError) {
        file = try OpenFile.locked(path, patience: patience)
        name = nil
    }

    /// Locks a file that exists for another purpose, and its name, in case the file is replaced. Every process that may read the
    /// file may lock it.
    ///
    /// - Throws: ``PrivateFileError`` if another process holds the lock, or the file cannot be read.
    public init(existing path: String) throws(PrivateFileError) {
        // First, because it knows the process that has it.
        let name = try Self.lockName(of: path)
        file = try OpenFile.locked(path, makesFile: false)
        self.name = consume name
    }

    private static func lockName(of path: String) throws(PrivateFileError) -> OpenFile? {
        switch NameLock(of: path) {
        case .taken(let descriptor): return consume descriptor
        case .held(let process):
            let who = process.map { " (PID \($0))" } ?? ""
            throw PrivateFileError(doing: "lock", path, "another process has locked it\(who)")
        case .none: return nil
        }
    }
}

extension OpenFile {
    /// Opens a file and locks it until it is closed.
    ///
    /// - Parameters:
    ///   - makesFile: Whether the file is made if it is missing.
    ///   - patience: Hundredths of a second to wait for another process.
    fileprivate static func locked(
        _ path: String, makesFile: Bool = true, patience: Int = 0
    ) throws(PrivateFileError) -> OpenFile {
        let file = try OpenFile(opening: path, makesFile ? O_RDWR | O_CREAT : O_RDONLY, doing: "lock")
        var tries = 0
        while flock(file.number, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            if code == EINTR { continue }
            guard code == EWOULDBLOCK, tries < patience else {
                throw code == EWOULDBLOCK
                    ? PrivateFileError(doing: "lock", path, "another process has locked it")
                    : PrivateFileError(doing: "lock", path, code)
            }
            tries += 1
            usleep(10_000)
        }
        return file
    }
}
