// Small files that only their owner may read (mode 0600) and that outlast a crash at any point.

internal import Glibc

/// Whole files, read and replaced at once.
public enum PrivateFile {
    /// Reads a whole file; `nil` if there is none.
    ///
    /// - Throws: ``PrivateFileError`` if there is one and it cannot be read, or it is longer than `maximumBytes`.
    public static func read(_ path: String, maximumBytes: Int = 1_048_576) throws(PrivateFileError) -> [UInt8]? {
        let descriptor: OpenFile
        do throws(PrivateFileError) {
            descriptor = try OpenFile(opening: path, O_RDONLY, doing: "read")
        } catch {
            guard error.isAboutNothingThere else { throw error }
            return nil
        }
        return try descriptor.readAll(of: path, maximumBytes: maximumBytes)
    }

    /// Replaces a file atomically: every reader, also after a crash, finds the complete old or the complete new
    /// content.
    ///
    /// The file is readable by its owner alone, even if it was not before.
    public static func replace(_ path: String, with bytes: [UInt8]) throws(PrivateFileError) {
        let draft = "\(path).new"
        // A draft that a crash left behind may be there, with another mode.
        _ = unsafe unlink(draft)
        do throws(PrivateFileError) {
            let file = try OpenFile(opening: draft, O_WRONLY | O_CREAT | O_EXCL, doing: "write")
            try file.write(bytes, to: path)
            try file.synchronize(path)
        } catch {
            _ = unsafe unlink(draft)
            throw error
        }
        guard unsafe rename(draft, path) == 0 else {
            let error = PrivateFileError(doing: "replace", path, errno)
            _ = unsafe unlink(draft)
            throw error
        }
        try synchronizeFolder(of: path)
    }

    /// Removes a file; a missing file is not an error.
    public static func remove(_ path: String) throws(PrivateFileError) {
        guard unsafe unlink(path) != 0 else { return try synchronizeFolder(of: path) }
        guard errno == ENOENT else { throw PrivateFileError(doing: "remove", path, errno) }
    }

    /// Renames a file, replacing any file of that name.
    public static func move(_ path: String, to other: String) throws(PrivateFileError) {
        guard unsafe rename(path, other) == 0 else { throw PrivateFileError(doing: "rename", path, errno) }
        try synchronizeFolder(of: path)
    }

    /// A name is on disk only when its folder is.
    static func synchronizeFolder(of path: String) throws(PrivateFileError) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = try OpenFile(opening: folder, O_RDONLY | O_DIRECTORY, doing: "open the folder")
        try descriptor.synchronize(folder)
    }
}

/// A file of one's own could not be used.
public struct PrivateFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file.
    public let path: String
    /// The operation that failed, to be read after "cannot".
    public let activity: String
    /// The system's error text.
    public let cause: String
    private let code: Int32

    init(doing activity: String, _ path: String, _ code: Int32) {
        self.path = path
        self.activity = activity
        self.code = code
        cause = "\(SystemError(code))"
    }

    init(doing activity: String, _ path: String, _ cause: String) {
        self.path = path
        self.activity = activity
        self.cause = cause
        code = 0
    }

    var isAboutNothingThere: Bool { code == ENOENT }

    /// Whether another process has locked the file.
    public var isLockedElsewhere: Bool { activity == "lock" && code == 0 }

    /// The whole story in one line.
    public var description: String {
        let advice =
            switch code {
            case EACCES, EPERM, EROFS: " Check who owns it and its folder, and that the disk is writable."
            case ENOSPC, EDQUOT: " Make room on the disk."
            case ENOENT: " Make its folder first."
            default: ""
            }
        return "cannot \(activity) \"\(path)\": \(cause).\(advice)"
    }
}
