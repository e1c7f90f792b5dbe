internal import Files
internal import Glibc

/// Identifies a version of a file.
public struct FileVersion: Hashable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int64
    private let nanoseconds: Int64

    /// - Returns: `nil` if there is no file at `path`, or none that may be looked at.
    public init?(of path: String) {
        do throws(FileChangeError) {
            guard let version = try Self.find(at: path) else { return nil }
            self = version
        } catch { return nil }
    }

    /// The version of the file at `path`; `nil` if there is no such file.
    ///
    /// - Throws: ``FileChangeError`` if it is not known whether there is one.
    public static func find(at path: String) throws(FileChangeError) -> FileVersion? {
        var status = stat()
        // Writes one status.
        guard unsafe stat(path, &status) == 0 else {
            let code = errno
            guard code == ENOENT else { throw FileChangeError("look at", path, errno: code) }
            return nil
        }
        return FileVersion(status)
    }

    private init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = Int64(status.st_mtim.tv_sec)
        nanoseconds = Int64(status.st_mtim.tv_nsec)
    }
}

/// Why a file could not be changed.
public struct FileChangeError: Error, Sendable, CustomStringConvertible {
    /// What was tried, what the system reported, and what to try.
    public let description: String
    /// Another process is changing the file, so it may go a little later.
    public let isForNow: Bool

    /// Says it.
    public init(_ description: String) { self.init(description, isForNow: false) }

    init(_ description: String, isForNow: Bool) {
        self.description = description
        self.isForNow = isForNow
    }

    init(_ action: String, _ path: String, errno code: Int32) {
        self.init(
            "cannot \(action) \(path): \(SystemError(code)). Check that its folder is there and may be written to.")
    }
}

/// The folder of a file that is replaced as a whole, and locked while it is. What is done reaches the folder that was opened, also if its
/// path leads elsewhere meanwhile.
public struct FileFolder: ~Copyable {
    private let path: String
    private let folder: OpenFile

    /// Opens the folder of `file`.
    public init(of file: String) throws(FileChangeError) {
        path = file.lastIndex(of: "/").map { String(file[...$0]) } ?? "."
        folder = try Self.open(path, O_RDONLY | O_DIRECTORY, "open the folder")
    }

    private static func open(
        _ path: String, _ flags: Int32, _ action: String
    ) throws(FileChangeError) -> OpenFile {
        do throws(SystemError) {
            return try OpenFile(path, flags)
        } catch {
            throw FileChangeError(action, path, errno: error.code)
        }
    }

    /// Waits until no other process changes a file here.
    ///
    /// - Parameter patience: Hundredths of a second for which the thread waits; 0 for not at all.
    /// - Throws: ``FileChangeError``; one that ``FileChangeError/isForNow`` if the other process keeps the lock.
    public borrowing func lock(patience: Int) throws(FileChangeError) {
        var tries = 0
        while flock(folder.number, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            if code == EINTR { continue }
            guard code == EWOULDBLOCK else { throw FileChangeError("lock", path, errno: code) }
            guard tries < patience else {
                throw FileChangeError(
                    "cannot lock \(path): another process is changing a file there. Try again; if it still fails, "
                        + "`fuser -v \(path)` names the process.", isForNow: true)
            }
            tries += 1
            usleep(10_000)
        }
    }

    /// Replaces a file by a new one with the same owner and mode. Without an old file, only the folder's owner has
    /// access, so that an exchange that runs as another user can read what an administrator wrote.
    ///
    /// - Parameter file: The path of the file, as errors have it; its last name is that in the folder.
    public borrowing func replace(_ file: String, with bytes: [UInt8]) throws(FileChangeError) {
        let name = file.split(separator: "/").last.map(String.init) ?? file
        let (draft, temporary) = ("\(name).\(getpid()).new", "\(file).\(getpid()).new")
        // A file that a crash left behind, or that another user has put there and keeps open.
        _ = unsafe unlinkat(folder.number, draft, 0)
        let output: OpenFile
        do throws(SystemError) {
            output = try OpenFile(draft, in: folder, O_WRONLY | O_CREAT | O_EXCL)
        } catch {
            throw FileChangeError("write", temporary, errno: error.code)
        }
        do throws(FileChangeError) {
            var around = stat()
            if let old = status(of: name) {
                _ = fchmod(output.number, old.st_mode & 0o777)
                _ = fchown(output.number, old.st_uid, old.st_gid)
            } else if unsafe fstat(folder.number, &around) == 0 {
                _ = fchown(output.number, around.st_uid, around.st_gid)
            }
            try Self.write(bytes, to: output, temporary)
            guard fsync(output.number) == 0 else { throw FileChangeError("write", temporary, errno: errno) }
            guard unsafe renameat(folder.number, draft, folder.number, name) == 0 else {
                throw FileChangeError("replace", file, errno: errno)
            }
        } catch {
            _ = unsafe unlinkat(folder.number, draft, 0)
            throw error
        }
        // The file is whole in either case; this makes its new name durable, if the file system can.
        _ = fsync(folder.number)
    }

    /// What the system says of a file here; nil if there is none. A link of a user other than root and this process's counts as none, because
    /// that user would choose the new file's owner and mode.
    private borrowing func status(of name: String) -> stat? {
        guard let entry = status(of: name, AT_SYMLINK_NOFOLLOW) else { return nil }
        guard entry.st_mode & S_IFMT == S_IFLNK else { return entry }
        return entry.st_uid == 0 || entry.st_uid == geteuid() ? status(of: name, 0) : nil
    }

    private borrowing func status(of name: String, _ flags: Int32) -> stat? {
        var status = stat()
        return unsafe fstatat(folder.number, name, &status, flags) == 0 ? status : nil
    }

    private static func write(
        _ bytes: [UInt8], to output: borrowing OpenFile, _ name: String
    ) throws(FileChangeError) {
        do throws(SystemError) {
            try output.write(bytes)
        } catch {
            throw FileChangeError("write", name, errno: error.code)
        }
    }
}
