internal import Glibc

/// A folder that is held open: operations on it and on files in it reach this folder, even if its path leads elsewhere
/// meanwhile. So root may use folders on whose path other users may write.
public struct HeldFolder: ~Copyable {
    /// Which users may read a file, besides root.
    public enum Reader: Sendable, Equatable {
        /// The process's user (mode 0600).
        case owner
        /// The process's user, and a group (mode 0640), as the group of a service may read what its administrator wrote. The same
        /// as ``owner`` if there is no such group, or the process is not root's.
        case group(String)
        /// Another user alone (mode 0600), who owns the file then. The same as ``owner`` if there is no such user, or the process
        /// is not root's.
        case user(String)
    }

    /// The path that led to it.
    public let path: String
    /// Folders on its path, itself included, in which users other than root and this process's may replace what the path, or a file
    /// in the folder, is next.
    public let exposed: [String]
    /// Folders on its path that this made, itself included, the outermost first.
    public let made: [String]
    private let folder: OpenFile

    /// Opens the folder at `path`, which is absolute, and makes it and those above it that are missing.
    ///
    /// - Parameters:
    ///   - mode: The rights to the folder if this makes it, independent of the process's mask.
    ///   - parents: The rights to those above it that this makes; the same unless given.
    /// - Throws: ``PrivateFileError`` if it cannot be made or written to, or the path has a symbolic link of a user other than root
    ///   and this process's.
    public init(making path: String, mode: UInt32 = 0o700, parents: UInt32? = nil) throws(PrivateFileError) {
        self.path = path
        var walk = try FolderWalk(path)
        let last = try walk.finish(mode: mode_t(mode), parents: mode_t(parents ?? mode))
        let isExposed = FolderWalk.isExposed(try FolderWalk.status(last.number, path))
        exposed = walk.exposed + (isExposed ? [path] : [])
        made = walk.made
        folder = last
    }

    /// Gives the folder to a user and its group, as the service of that user needs it. Nothing changes if there is no such user,
    /// the folder is not root's, or this process is not.
    public borrowing func hand(toUser name: String) throws(PrivateFileError) {
        guard geteuid() == 0, let user = unsafe getpwnam(name)?.pointee,
            try FolderWalk.status(folder.number, path).st_uid == 0
        else { return }
        guard unsafe fchown(folder.number, user.pw_uid, user.pw_gid) == 0 else {
            throw PrivateFileError(doing: "give away", path, errno)
        }
    }

    /// Reads a file of the folder; nil if there is none. A symbolic link is refused, and so is a file with another name: the folder's
    /// owner may have linked to a file that the owner may not read.
    public borrowing func read(_ name: String, maximumBytes: Int) throws(PrivateFileError) -> [UInt8]? {
        let whole = "\(path)/\(name)"
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(name, in: folder, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
        } catch {
            if error.code == ENOENT { return nil }
            guard error.code == ELOOP else { throw PrivateFileError(doing: "read", whole, error.code) }
            throw PrivateFileError(doing: "read", whole, "it is a symbolic link, not a regular file")
        }
        let status = try FolderWalk.status(file.number, whole)
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw PrivateFileError(doing: "read", whole, "it is not a regular file")
        }
        guard status.st_nlink == 1 else {
            throw PrivateFileError(
                doing: "read", whole, "it has a second name, so it may be a file of something else. Remove it")
        }
        return try file.readAll(of: whole, maximumBytes: maximumBytes)
    }

    /// Replaces a file of the folder atomically, as ``PrivateFile/replace(_:with:)`` does. The file has its owner and its rights
    /// before it has its name.
    public borrowing func replace(
        _ name: String, with bytes: [UInt8], for reader: Reader = .owner
    ) throws(PrivateFileError) {
        let whole = "\(path)/\(name)"
        let draft = "\(name).new"
        // A draft that a crash left behind may be there, with another mode.
        _ = unlink(draft)
        do throws(PrivateFileError) {
            try write(bytes, to: draft, whole, for: reader)
            guard unsafe renameat(folder.number, draft, folder.number, name) == 0 else {
                throw PrivateFileError(doing: "replace", whole, errno)
            }
        } catch {
            _ = unlink(draft)
            throw error
        }
        try folder.synchronize(path)
    }

    /// Removes a file of the folder; a missing one is no error.
    public borrowing func remove(_ name: String) throws(PrivateFileError) {
        guard unlink(name) == 0 || errno == ENOENT else {
            throw PrivateFileError(doing: "remove", "\(path)/\(name)", errno)
        }
        try folder.synchronize(path)
    }

    /// Removes a folder in this one, if it is empty; a missing one is no error.
    public borrowing func removeFolder(_ name: String) throws(PrivateFileError) {
        guard unlink(name, AT_REMOVEDIR) == 0 || errno == ENOENT else {
            throw PrivateFileError(doing: "remove the folder", "\(path)/\(name)", errno)
        }
        try folder.synchronize(path)
    }

    private borrowing func unlink(_ name: String, _ flags: Int32 = 0) -> Int32 {
        unsafe unlinkat(folder.number, name, flags)
    }

    private borrowing func write(
        _ bytes: [UInt8], to draft: String, _ whole: String, for reader: Reader
    ) throws(PrivateFileError) {
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(draft, in: folder, O_WRONLY | O_CREAT | O_EXCL)
        } catch {
            throw PrivateFileError(doing: "write", whole, error.code)
        }
        try file.makePrivate(whole)
        try file.write(bytes, to: whole)
        try file.permit(reader, whole)
        try file.synchronize(whole)
    }
}

extension OpenFile {
    /// Gives a file its owner, or its group and the rights for that.
    fileprivate func permit(_ reader: HeldFolder.Reader, _ path: String) throws(PrivateFileError) {
        guard geteuid() == 0 else { return }
        let isDone: Bool
        switch reader {
        case .owner: return
        case .group(let name):
            guard let group = unsafe getgrnam(name)?.pointee.gr_gid else { return }
            // The owner stays.
            isDone = fchown(number, uid_t.max, group) == 0 && fchmod(number, 0o640) == 0
        case .user(let name):
            guard let user = unsafe getpwnam(name)?.pointee else { return }
            isDone = unsafe fchown(number, user.pw_uid, user.pw_gid) == 0
        }
        guard isDone else { throw PrivateFileError(doing: "share", path, errno) }
    }
}
