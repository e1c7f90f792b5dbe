internal import Glibc

/// The rights that users other than a file's owner have to it.
///
/// They are changed by the file's descriptor, never by its path: by the path, a process of root could change another
/// file that the folder's owner puts there meanwhile.
public enum OthersRights {
    /// Why the rights to a file cannot be removed.
    public enum Failure: Error, Equatable, Sendable {
        /// It is a symbolic link of a user other than root and this process's, who can lead it elsewhere at any time.
        case linkOfAnother(String)
        /// It is a link, or no file of bytes.
        case notRegular(String)
        /// It has another name, so it may be a file of something else.
        case notAlone(String)
        /// The system refuses: `errno`.
        case system(String, Int32)

        /// The file.
        public var path: String {
            switch self {
            case .linkOfAnother(let path), .notRegular(let path), .notAlone(let path), .system(let path, _): path
            }
        }

        /// What is wrong, to be read after a colon.
        public var message: String {
            switch self {
            case .linkOfAnother: "it is a symbolic link of another user"
            case .notRegular: "it is not a regular file"
            case .notAlone: "it has a second name, so it may be a file of something else"
            case .system(_, let code): RegularFileError(systemError: code).message
            }
        }
    }

    /// `O_PATH`, which Swift does not import: the same number on all of Linux that Swift runs on.
    private static let pathOnly: Int32 = 0x20_0000

    /// Where the file itself is, if `path` is a symbolic link of root or of this process's user; it is made, empty, if it is missing.
    public static func target(of path: String) throws(Failure) -> String {
        var status = stat()
        // Writes one status.
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return path }
        guard status.st_uid == 0 || status.st_uid == geteuid() else { throw .linkOfAnother(path) }
        // Writes one status.
        if unsafe stat(path, &status) != 0, errno == ENOENT {
            _ = try? OpenFile(path, O_CREAT | O_WRONLY | O_NONBLOCK)
        }
        guard let whole = unsafe realpath(path, nil) else { throw .system(path, errno) }
        defer { unsafe free(whole) }
        return unsafe String(cString: whole)
    }

    /// Removes all rights of others to the file at `path`.
    ///
    /// The file itself is not opened: closing a second descriptor that can read or write would drop the locks that this process has on it
    /// (`fcntl(2)`), such as SQLite's.
    ///
    /// - Returns: Whether they had any; false if there is no file.
    public static func remove(from path: String) throws(Failure) -> Bool {
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(path, pathOnly | O_NOFOLLOW)
        } catch {
            if error.code == ENOENT { return false }
            throw .system(path, error.code)
        }
        var status = stat()
        // Writes one status.
        guard unsafe fstat(file.number, &status) == 0 else { throw .system(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular(path) }
        guard status.st_mode & 0o077 != 0 else { return false }
        guard status.st_nlink == 1 else { throw .notAlone(path) }
        // Before Linux 6.6, only this path can change the file of such a descriptor.
        guard unsafe chmod("/proc/self/fd/\(file.number)", 0o600) == 0 else { throw .system(path, errno) }
        return true
    }
}

/// Rights of users other than this process's to files.
public enum FolderRights {
    /// Whether a user may replace a file at `path`, by the owner and mode of its folder. Where a group may, the user may be of it,
    /// or be in an access list, of which the mode shows no more: the answer is yes.
    public static func mayReplace(_ path: String, user: UInt32) -> Bool {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        var status = stat()
        guard user != 0, unsafe stat(folder, &status) == 0 else { return true }
        let needed = mode_t(0o3)
        if status.st_uid == user { return status.st_mode >> 6 & needed == needed }
        return status.st_mode & needed == needed || status.st_mode >> 3 & needed == needed
    }

    /// The owner of a file; nil if no file there can be inspected.
    public static func owner(of path: String) -> UInt32? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status.st_uid : nil
    }

    /// The name of a user, or the number of one without.
    public static func name(of user: UInt32) -> String {
        unsafe getpwuid(user).map { unsafe String(cString: $0.pointee.pw_name) } ?? "\(user)"
    }
}
