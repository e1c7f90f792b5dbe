internal import Glibc

/// The path to a folder, one folder after the other, so that each is looked at before the next is opened in it.
///
/// A symbolic link is followed only if it belongs to root or to this process's user: another user's could lead elsewhere a
/// moment later.
struct FolderWalk: ~Copyable {
    /// As many links in turn as the system follows.
    private static let mostLinks = 40
    /// `O_PATH`, which Swift does not import: the same number on all of Linux that Swift runs on.
    private static let pathOnly: Int32 = 0x20_0000

    private var folder: OpenFile
    /// The path of `folder`, without a slash at its end.
    private var place = ""
    /// Names that follow, the next one last.
    private var names: [String]
    private var links = 0
    /// Folders on the path in which other users may replace the entry that the path continues with.
    private(set) var exposed: [String] = []
    /// Folders that this has made, the outermost first.
    private(set) var made: [String] = []
    private let path: String

    init(_ path: String) throws(PrivateFileError) {
        self.path = path
        folder = try Self.root(path)
        names = Self.names(path)
    }

    /// Walks to the end, and opens the last folder for reading.
    ///
    /// - Parameters:
    ///   - mode: The rights to the last folder if this makes it, independent of the process's mask.
    ///   - parents: The rights to those above it that this makes.
    mutating func finish(mode: mode_t, parents: mode_t) throws(PrivateFileError) -> OpenFile {
        while let name = names.popLast() {
            try enter(name, mode: names.isEmpty ? mode : parents)
        }
        let last = try open(".", path, O_RDONLY | O_DIRECTORY)
        guard unsafe faccessat(last.number, ".", W_OK | X_OK, AT_EACCESS) == 0 else {
            throw PrivateFileError(doing: "write to the folder", path, errno)
        }
        return last
    }

    private mutating func enter(_ name: String, mode: mode_t) throws(PrivateFileError) {
        let whole = "\(place)/\(name)"
        let around = try Self.status(folder.number, place)
        let entry = try open(name, whole, mode: mode)
        let status = try Self.status(entry.number, whole)
        let isOthers = !Self.isTrusted(status.st_uid)
        // In a sticky folder, as /tmp is one, only the owner of an entry may replace it.
        if Self.isExposed(around), isOthers || around.st_mode & S_ISVTX == 0 { note(place.isEmpty ? "/" : place) }
        switch status.st_mode & S_IFMT {
        case S_IFDIR:
            folder = entry
            place = name == ".." ? String(place[..<(place.lastIndex(of: "/") ?? place.startIndex)]) : whole
        case S_IFLNK:
            links += 1
            guard links <= Self.mostLinks else { throw PrivateFileError(doing: "use the folder", path, ELOOP) }
            guard !isOthers else {
                throw PrivateFileError(
                    doing: "use the folder", path,
                    "\"\(whole)\" is a symbolic link of the user \(FolderRights.name(of: status.st_uid)), who can lead it "
                        + "elsewhere at any time. Name the folder itself")
            }
            let target = try Self.target(of: entry, whole)
            names += Self.names(target)
            guard target.hasPrefix("/") else { return }
            folder = try Self.root(path)
            place = ""
        default: throw PrivateFileError(doing: "use the folder", path, "\"\(whole)\" is not a folder")
        }
    }

    private mutating func note(_ folder: String) {
        if !exposed.contains(folder) { exposed.append(folder) }
    }

    /// Opens an entry of the folder, without following it; makes a folder if there is none.
    private mutating func open(
        _ name: String, _ whole: String, mode: mode_t
    ) throws(PrivateFileError) -> OpenFile {
        let flags = Self.pathOnly | O_NOFOLLOW
        do throws(SystemError) {
            return try OpenFile(name, in: folder, flags)
        } catch  where error.code == ENOENT {
            let isMade = unsafe mkdirat(folder.number, name, 0o700) == 0
            // Another process may have made it meanwhile.
            guard isMade || errno == EEXIST else { throw PrivateFileError(doing: "make the folder", whole, errno) }
            if isMade { made.append(whole) }
            let entry = try open(name, whole, flags)
            if isMade, mode != 0o700 { try permit(name, whole, mode) }
            return entry
        } catch {
            throw PrivateFileError(doing: "open the folder", whole, error.code)
        }
    }

    private func open(_ name: String, _ whole: String, _ flags: Int32) throws(PrivateFileError) -> OpenFile {
        do throws(SystemError) {
            return try OpenFile(name, in: folder, flags)
        } catch {
            throw PrivateFileError(doing: "open the folder", whole, error.code)
        }
    }

    /// Changes the rights to a folder that this process has made.
    private func permit(_ name: String, _ whole: String, _ mode: mode_t) throws(PrivateFileError) {
        let made = try open(name, whole, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        let status = try Self.status(made.number, whole)
        guard status.st_uid == geteuid() else {
            throw PrivateFileError(doing: "make the folder", whole, "another user has replaced it")
        }
        guard fchmod(made.number, mode) == 0 else { throw PrivateFileError(doing: "protect", whole, errno) }
    }

    // MARK: Single steps

    /// Whether users other than root and this process's may make and rename entries of a folder.
    static func isExposed(_ status: stat) -> Bool {
        let group = status.st_gid != 0 && status.st_gid != getegid() ? mode_t(0o020) : 0
        return !isTrusted(status.st_uid) || status.st_mode & (group | 0o002) != 0
    }

    private static func isTrusted(_ user: uid_t) -> Bool { user == 0 || user == geteuid() }

    private static func root(_ path: String) throws(PrivateFileError) -> OpenFile {
        try OpenFile(opening: "/", pathOnly | O_DIRECTORY, doing: "open the folder")
    }

    /// The names of a path, the first one last.
    private static func names(_ path: String) -> [String] {
        path.split(separator: "/").filter { $0 != "." }.map(String.init).reversed()
    }

    static func status(_ descriptor: Int32, _ place: String) throws(PrivateFileError) -> stat {
        var status = stat()
        // Writes one status.
        guard unsafe fstat(descriptor, &status) == 0 else { throw PrivateFileError(doing: "look at", place, errno) }
        return status
    }

    /// The target of an open link.
    private static func target(of link: borrowing OpenFile, _ whole: String) throws(PrivateFileError) -> String {
        let number = link.number
        var text = [CChar](repeating: 0, count: 4_096)
        // Writes at most `buffer.count` bytes, and no zero behind them.
        let count = unsafe text.withUnsafeMutableBufferPointer { buffer -> Int in
            guard let start = buffer.baseAddress else { return 0 }
            return unsafe readlinkat(number, "", start, buffer.count)
        }
        guard count > 0 else { throw PrivateFileError(doing: "read the link", whole, errno) }
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
