internal import Glibc

/// Folders that files are to be written into.
public enum WritableFolder {
    /// Makes the folder at `path`, and those above it that are missing, for their owner alone. A folder that exists stays as it is.
    ///
    /// - Throws: ``RegularFileError`` if it cannot be made, or exists and cannot be written to.
    public static func make(_ path: String) throws(RegularFileError) {
        if try exists(path) { return }
        try make(parent(of: path))
        // Another process may have made it meanwhile.
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw RegularFileError(systemError: errno) }
    }

    /// Finds out whether ``make(_:)`` would succeed, and makes nothing.
    ///
    /// - Throws: ``RegularFileError`` if it would not.
    public static func check(_ path: String) throws(RegularFileError) {
        if try !exists(path) { try check(parent(of: path)) }
    }

    /// Finds out whether a folder is at `path` that files can be made in.
    public static func checkExisting(_ path: String) throws(RegularFileError) {
        if try !exists(path) { throw RegularFileError(systemError: ENOENT) }
    }

    /// Bytes that users who are not root may still write to the disk of a folder or file; nil if it cannot be looked at.
    public static func freeBytes(at path: String) -> Int? {
        var status = statvfs()
        // Writes one status.
        guard unsafe statvfs(path, &status) == 0 else { return nil }
        return Int(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    }

    /// The folder that a file is in, or a folder.
    public static func parent(of path: String) -> String {
        var rest = path[...]
        while rest.count > 1, rest.last == "/" { rest.removeLast() }
        guard let slash = rest.lastIndex(of: "/") else { return "." }
        return slash == rest.startIndex ? "/" : String(rest[..<slash])
    }

    /// Whether a folder is there.
    ///
    /// - Throws: ``RegularFileError`` if something else is there, or it cannot be written to or looked at.
    private static func exists(_ path: String) throws(RegularFileError) -> Bool {
        var status = stat()
        // Writes one status.
        guard unsafe stat(path, &status) == 0 else {
            // The last two have no parent to be made in.
            if errno == ENOENT, path != "/", path != "." { return false }
            throw RegularFileError(systemError: errno)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw RegularFileError(message: "it is not a folder", systemError: nil)
        }
        try RegularFile.checkAccess(path, W_OK | X_OK)
        return true
    }
}
