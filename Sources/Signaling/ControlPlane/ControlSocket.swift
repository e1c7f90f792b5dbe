internal import Files
internal import Glibc
internal import Realtime
internal import Synchronization

/// Who may connect to a control socket. Root always may.
public enum ControlAccess: String, CaseIterable, Sendable {
    /// The process's user: mode 0600.
    case owner
    /// The members of the process's group, too: mode 0660.
    case group
}

/// A socket that listens at a path, to which its owner may connect (mode 0600), or its group, too (mode 0660). Its `deinit` removes
/// the path.
///
/// A socket that a dead process left at the path is replaced; one at which a process listens is not.
public final class ControlSocket: Sendable {
    /// Where it is.
    public let path: String
    /// Closed by the caller of ``takeDescriptor()``, else by this object.
    private let descriptor: Mutex<Int32?>
    /// The file that was made, so that no other is removed; nil once it has been. The system gives its number to no other
    /// file as long as the socket is open.
    private let identity: Mutex<Identity?>

    private struct Identity: Equatable {
        var device: dev_t
        var number: ino_t
    }

    /// Bytes in a socket's path: what the system has room for (unix(7)), without the zero at the end.
    public static let longestPath = 107

    /// Clients that may wait to be taken.
    private static let backlog: Int32 = 16

    /// Listens at `path`. Its folder is made if it is missing, but no folder above that.
    public init(path: String, access: ControlAccess = .owner) throws(ControlSocketError) {
        self.path = path
        let folder = Self.folder(of: path)
        if unsafe mkdir(folder, 0o700) == 0 {
            if access == .group, unsafe chmod(folder, 0o750) != 0 {
                throw ControlSocketError(.notUsable, path, "let the group into the folder \"\(folder)\"", errno: errno)
            }
        } else if errno != EEXIST {
            throw ControlSocketError(.notUsable, path, "make the folder \"\(folder)\"", errno: errno)
        }
        // If two processes find the same dead socket, one replaces it, and the other then finds a live one.
        let lock = try FolderLock(folder, for: path)
        try Self.removeDead(path)
        let socket = try Self.listen(at: path, access)
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            let code = errno
            close(socket)
            throw ControlSocketError(.notUsable, path, "find the socket again", errno: code)
        }
        descriptor = Mutex(socket)
        identity = Mutex(Identity(device: status.st_dev, number: status.st_ino))
        lock.end()
    }

    deinit {
        remove()
        if let open = descriptor.withLock({ $0 }) { close(open) }
    }

    /// The listening descriptor, to be closed by who takes it; nil if it has been taken.
    package func takeDescriptor() -> Int32? {
        descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
    }

    /// Removes the path, unless it is another socket's by now. To be called while the socket is open.
    package func remove() {
        let identity = identity.withLock { identity in
            defer { identity = nil }
            return identity
        }
        var status = stat()
        guard let identity, unsafe lstat(path, &status) == 0,
            Identity(device: status.st_dev, number: status.st_ino) == identity
        else { return }
        _ = unsafe unlink(path)
    }

    // MARK: Making it

    private static func listen(
        at path: String, _ access: ControlAccess
    ) throws(ControlSocketError) -> Int32 {
        guard let address = UnixAddress(path) else {
            throw ControlSocketError(.notUsable, path, "listen there", cause: UnixAddress.tooLong)
        }
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = Glibc.socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else {
            throw ControlSocketError(.notUsable, path, "make a socket", errno: errno)
        }
        // On Linux the file gets the mode that the socket has when it is bound, so no other user can open it at any time.
        guard fchmod(descriptor, 0o600) == 0, address.bind(descriptor), admit(access, to: path),
            Glibc.listen(descriptor, backlog) == 0
        else {
            let code = errno
            close(descriptor)
            throw ControlSocketError(.notUsable, path, "listen there", errno: code)
        }
        return descriptor
    }

    /// Lets the group connect. That comes after the socket is bound, which takes away what the process's umask forbids.
    private static func admit(_ access: ControlAccess, to path: String) -> Bool {
        guard access == .group else { return true }
        return unsafe fchmodat(AT_FDCWD, path, 0o660, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Removes a socket without a listener.
    private static func removeDead(_ path: String) throws(ControlSocketError) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw ControlSocketError(.notUsable, path, "look at what is there", errno: errno)
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw ControlSocketError(.notUsable, path, "listen there", cause: "there is a file that is not a socket")
        }
        switch Listener.find(at: path) {
        case .nobody: break
        case .process(let name): throw ControlSocketError(.inUse, path, "listen there", cause: "\(name) does already")
        case .unknown(let code): throw ControlSocketError(.notUsable, path, "ask who listens there", errno: code)
        }
        guard unsafe unlink(path) == 0 || errno == ENOENT else {
            throw ControlSocketError(.notUsable, path, "remove the socket of a process that is gone", errno: errno)
        }
    }

    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// A lock on a folder; others who want it wait. It goes with its process.
private struct FolderLock: ~Copyable {
    private let file: OpenFile

    init(_ folder: String, for path: String) throws(ControlSocketError) {
        file = try Self.lock(try Self.open(folder, for: path), folder, for: path)
    }

    private static func open(_ folder: String, for path: String) throws(ControlSocketError) -> OpenFile {
        do throws(SystemError) {
            return try OpenFile(folder, O_RDONLY | O_DIRECTORY)
        } catch {
            throw ControlSocketError(.notUsable, path, "open the folder \"\(folder)\"", errno: error.code)
        }
    }

    /// Waits for at most two seconds: the lock is held only during a few system calls.
    private static func lock(
        _ file: consuming OpenFile, _ folder: String, for path: String
    ) throws(ControlSocketError) -> OpenFile {
        for _ in 0..<200 {
            if flock(file.number, LOCK_EX | LOCK_NB) == 0 { return file }
            usleep(10_000)
        }
        throw ControlSocketError(.notUsable, path, "lock the folder \"\(folder)\"", errno: EWOULDBLOCK)
    }

    consuming func end() {}
}

/// Who listens at a path.
private enum Listener {
    case nobody
    /// Its number and name, for people.
    case process(String)
    /// It cannot be found out, for this reason.
    case unknown(errno: Int32)

    static func find(at path: String) -> Listener {
        guard let address = UnixAddress(path) else { return .unknown(errno: ENAMETOOLONG) }
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = Glibc.socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { return .unknown(errno: errno) }
        defer { close(descriptor) }
        guard !address.connect(descriptor) else { return .process(peer(of: descriptor)) }
        switch errno {
        case ECONNREFUSED, ENOENT: return .nobody
        // It listens, and has more to do than it can.
        case EAGAIN: return .process("another process")
        case let code: return .unknown(errno: code)
        }
    }

    /// Process, user and group of who made the socket listen (unix(7), SO_PEERCRED).
    private static func peer(of descriptor: Int32) -> String {
        var credentials: [Int32] = [0, 0, 0]
        var length = socklen_t(12)
        let status = unsafe credentials.withUnsafeMutableBytes {
            unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, $0.baseAddress, &length)
        }
        guard status == 0, credentials[0] > 0 else { return "another process" }
        let name = ProcessName.of(credentials[0]).map { " (\($0))" } ?? ""
        return "process \(credentials[0])\(name)"
    }
}

/// The system's name of a process.
private enum ProcessName {
    static func of(_ process: Int32) -> String? {
        let text = KernelFile.text(of: "/proc/\(process)/comm")?.unicodeScalars ?? "".unicodeScalars
        let name = String(String.UnicodeScalarView(text.prefix { (" "..."~").contains($0) }))
        return name.isEmpty ? nil : name
    }
}
