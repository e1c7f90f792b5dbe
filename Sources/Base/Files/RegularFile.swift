// Files: opens files that hold bytes and nothing else, so that no pipe or device can block or surprise a thread; keeps private ones.

internal import Glibc

/// Opens regular files only.
///
/// Opening a named pipe blocks until another process opens its other end, and reading from it blocks while no process
/// writes; opening a device can start it. So a path from outside is checked first, and opened without blocking.
public enum RegularFile {
    /// Opens the file at `path`, closed in programs that this one starts.
    ///
    /// - Parameters:
    ///   - flags: Those of `open(2)`. With `O_NOFOLLOW` a symbolic link at the end of the path is refused.
    ///   - mode: The rights of a file that this creates.
    /// - Throws: ``RegularFileError`` if the system refuses, or something other than a regular file is there.
    public static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0o600) throws(RegularFileError) -> OpenFile {
        var status = stat()
        let followsLinks = flags & O_NOFOLLOW == 0
        // Looked at before it is opened, because opening some devices has effects. Each call writes one status.
        if unsafe (followsLinks ? stat(path, &status) : lstat(path, &status)) == 0 { try check(status) }
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(path, flags | O_NONBLOCK | O_NOCTTY, mode: mode)
        } catch {
            throw RegularFileError(systemError: error.code)
        }
        // And again, because another file may be at the path by now.
        guard unsafe fstat(file.number, &status) == 0 else { throw RegularFileError(systemError: errno) }
        try check(status)
        return file
    }

    /// Finds out whether a regular file is at `path`, or nothing, without opening it.
    public static func check(_ path: String) throws(RegularFileError) {
        var status = stat()
        // Writes one status.
        if unsafe stat(path, &status) == 0 { try check(status) }
    }

    /// Finds out whether this process has the rights `mode` (of `access(2)`) to what is at `path`.
    public static func checkAccess(_ path: String, _ mode: Int32) throws(RegularFileError) {
        guard unsafe faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 else {
            throw RegularFileError(systemError: errno)
        }
    }

    /// Whether a regular file is at `path` that this process may run. A folder may be entered, and not run.
    public static func mayBeRun(_ path: String) -> Bool {
        isThere(path) && (try? checkAccess(path, X_OK)) != nil
    }

    /// Whether there is a regular file at `path`.
    public static func isThere(_ path: String) -> Bool { mode(path) & S_IFMT == S_IFREG }

    /// Whether there is a folder at `path`.
    public static func isFolder(_ path: String) -> Bool { mode(path) & S_IFMT == S_IFDIR }

    /// Whether every user of this machine may read the file at `path`: by its own mode, and by those of all folders on the
    /// way to it. Access control lists are not looked at.
    public static func isReadableByAll(_ path: String) -> Bool {
        guard var place = try? resolved(path) else { return false }
        guard mode(place) & S_IROTH != 0 else { return false }
        while place != "/" {
            place = WritableFolder.parent(of: place)
            guard mode(place) & S_IXOTH != 0 else { return false }
        }
        return true
    }

    /// The path from the root: a relative one is taken from the working folder.
    public static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = unsafe getcwd(nil, 0) else { return path }
        defer { unsafe free(folder) }
        return unsafe "\(String(cString: folder))/\(path)"
    }

    /// The path from the root of a file in a folder or below it, without symbolic links.
    ///
    /// - Parameters:
    ///   - name: Relative to the folder.
    /// - Throws: ``RegularFileError`` if there is no such file, it cannot be looked at, or a symbolic link or `..` leads out of the folder.
    public static func path(of name: String, within folder: String) throws(RegularFileError) -> String {
        let root = try resolved(folder)
        let path = try resolved("\(folder)/\(name)")
        guard path.hasPrefix(root == "/" ? root : root + "/") else {
            throw RegularFileError(message: "it is outside of \(folder)", systemError: nil)
        }
        return path
    }

    private static func resolved(_ path: String) throws(RegularFileError) -> String {
        guard let whole = unsafe realpath(path, nil) else { throw RegularFileError(systemError: errno) }
        defer { unsafe free(whole) }
        return unsafe String(cString: whole)
    }

    private static func mode(_ path: String) -> mode_t {
        var status = stat()
        // Writes one status.
        return unsafe stat(path, &status) == 0 ? status.st_mode : 0
    }

    /// Finds out whether a socket is at `path`, or nothing.
    public static func checkSocket(_ path: String) throws(RegularFileError) {
        var status = stat()
        // Writes one status.
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK else { return }
        throw RegularFileError(message: "there is a file that is not a socket", systemError: nil)
    }

    private static func check(_ status: stat) throws(RegularFileError) {
        let kind: String
        switch status.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFDIR: kind = "it is a folder"
        case S_IFIFO: kind = "it is a named pipe"
        case S_IFSOCK: kind = "it is a socket"
        case S_IFLNK: kind = "it is a symbolic link"
        default: kind = "it is a device"
        }
        throw RegularFileError(message: "\(kind), not a regular file", systemError: nil)
    }
}

/// A file could not be opened.
public struct RegularFileError: Error, Equatable, Sendable {
    /// The system's error text, or what is at the path instead of a regular file; to be read after a colon.
    public let message: String
    /// `errno`, if the system refused; nil if something other than a regular file is there.
    public let systemError: Int32?

    /// An error for the reason in the text, which is read after a colon.
    public init(_ message: String) { self.init(message: message, systemError: nil) }

    /// An error of a file that is open.
    public init(_ error: SystemError) { self.init(systemError: error.code) }

    init(message: String, systemError: Int32?) {
        self.message = message
        self.systemError = systemError
    }

    init(systemError: Int32) {
        // The system's answers to files that changed between the look and the opening.
        let message =
            switch systemError {
            case ELOOP: "it is a symbolic link, not a regular file"
            case ENXIO: "it is not a regular file"
            default: "\(SystemError(systemError))"
            }
        self.init(message: message, systemError: systemError)
    }
}

/// Identifies a file of the machine, independent of the name or link that leads to it.
public struct FileIdentity: Hashable, Sendable {
    private let device: UInt64
    private let inode: UInt64

    /// The file at `path`, through links; nil if there is none that may be looked at.
    public init?(path: String) {
        guard let status = status(of: path, followsLink: true) else { return nil }
        self.init(status)
    }

    /// What is at `path` itself, which may be a link; nil if there is nothing that may be looked at.
    public init?(entry path: String) {
        guard let status = status(of: path, followsLink: false) else { return nil }
        self.init(status)
    }

    /// The file that is open as `descriptor`; nil if it is not open.
    public init?(descriptor: Int32) {
        guard let status = status(ofDescriptor: descriptor) else { return nil }
        self.init(status)
    }

    fileprivate init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
    }
}

/// What the system says of a file, or of the link to it; nil if there is none that may be looked at.
private func status(of path: String, followsLink: Bool) -> stat? {
    var status = stat()
    return unsafe (followsLink ? stat(path, &status) : lstat(path, &status)) == 0 ? status : nil
}

/// What the system says of an open file; nil if it is not open.
private func status(ofDescriptor descriptor: Int32) -> stat? {
    var status = stat()
    return unsafe fstat(descriptor, &status) == 0 ? status : nil
}

/// The size and age of a regular file or a folder.
public struct FileMeasure: Hashable, Sendable {
    /// Bytes.
    public let bytes: Int
    /// When it was last written to, in seconds since 1970.
    public let modified: Double

    /// The regular file at `path` itself; nil for a link, for anything else, and for what may not be looked at.
    public init?(path: String) {
        guard let status = status(of: path, followsLink: false), status.st_mode & S_IFMT == S_IFREG else { return nil }
        self.init(status)
    }

    /// The folder at `path`, through links, whose time changes with the names in it; nil if there is none.
    public init?(folder path: String) {
        guard let status = status(of: path, followsLink: true), status.st_mode & S_IFMT == S_IFDIR else { return nil }
        self.init(status)
    }

    /// The file that is open as `descriptor`; nil if it is not open.
    public init?(descriptor: Int32) {
        guard let status = status(ofDescriptor: descriptor) else { return nil }
        self.init(status)
    }

    fileprivate init(_ status: stat) {
        bytes = Int(status.st_size)
        modified = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
    }
}

/// Which file is at a path, with its size and age: another one if a program has replaced it or written to it.
public struct FileStamp: Hashable, Sendable {
    /// Which file it is.
    public let identity: FileIdentity
    /// Its size, and when it was last written to.
    public let measure: FileMeasure

    /// What is at `path` itself, which may be a link; nil if there is nothing that may be looked at.
    public init?(entry path: String) {
        guard let status = status(of: path, followsLink: false) else { return nil }
        (identity, measure) = (FileIdentity(status), FileMeasure(status))
    }
}

/// The file or free path that a path leads to, through links.
public enum FilePlace: Hashable, Sendable {
    /// A file.
    case file(FileIdentity)
    /// A name in a folder that has no such file yet; nil for a folder that may not be looked at.
    case nothing(folder: FileIdentity?, name: String)

    /// Follows `path` to its end.
    public init(path: String) {
        var path = path
        // As many links in turn as the system follows.
        for _ in 0..<40 {
            if let identity = FileIdentity(path: path) {
                self = .file(identity)
                return
            }
            guard let target = Self.target(ofLink: path) else { break }
            path = target.hasPrefix("/") ? target : "\(WritableFolder.parent(of: path))/\(target)"
        }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        self = .nothing(folder: FileIdentity(path: WritableFolder.parent(of: path)), name: name)
    }

    private static func target(ofLink path: String) -> String? {
        var text = [CChar](repeating: 0, count: 4_096)
        // Writes at most `buffer.count` bytes, and no zero behind them.
        let count = unsafe text.withUnsafeMutableBufferPointer { buffer -> Int in
            guard let start = buffer.baseAddress else { return 0 }
            return unsafe readlink(path, start, buffer.count)
        }
        guard count > 0 else { return nil }
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
