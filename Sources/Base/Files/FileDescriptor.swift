internal import Glibc

/// One open file; closed by its `deinit`.
struct FileDescriptor: ~Copyable {
    let number: Int32

    /// Takes over a descriptor that is open.
    init(adopting number: Int32) { self.number = number }

    init(opening path: String, _ flags: Int32, doing activity: String) throws(PrivateFileError) {
        number = try Self.open(path, flags, doing: activity)
    }

    /// Opens a file and locks it until it is closed.
    ///
    /// - Parameters:
    ///   - makesFile: Whether the file is made if it is missing.
    ///   - patience: Hundredths of a second to wait for another process.
    init(locking path: String, makesFile: Bool = true, patience: Int = 0) throws(PrivateFileError) {
        let opened = try Self.open(path, makesFile ? O_RDWR | O_CREAT : O_RDONLY, doing: "lock")
        var tries = 0
        while flock(opened, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            if code == EINTR { continue }
            guard code == EWOULDBLOCK, tries < patience else {
                close(opened)
                throw code == EWOULDBLOCK
                    ? PrivateFileError(doing: "lock", path, "another process has locked it")
                    : PrivateFileError(doing: "lock", path, code)
            }
            tries += 1
            usleep(10_000)
        }
        number = opened
    }

    private static func open(
        _ path: String, _ flags: Int32, doing activity: String
    ) throws(PrivateFileError) -> Int32 {
        if flags & O_DIRECTORY != 0 {
            let number = unsafe Glibc.open(path, flags | O_CLOEXEC)
            guard number >= 0 else { throw PrivateFileError(doing: activity, path, errno) }
            return number
        }
        do throws(RegularFileError) {
            return try RegularFile.open(path, flags)
        } catch {
            throw error.systemError.map { PrivateFileError(doing: activity, path, $0) }
                ?? PrivateFileError(doing: activity, path, error.message)
        }
    }

    deinit { close(number) }

    /// Makes the file readable only by its owner, also if it existed before.
    func makePrivate(_ path: String) throws(PrivateFileError) {
        guard fchmod(number, 0o600) == 0 else { throw PrivateFileError(doing: "protect", path, errno) }
    }

    /// Its length in bytes.
    func length(_ path: String) throws(PrivateFileError) -> Int {
        let end = lseek(number, 0, SEEK_END)
        guard end >= 0 else { throw PrivateFileError(doing: "measure", path, errno) }
        return Int(end)
    }

    func write(_ bytes: [UInt8], to path: String) throws(PrivateFileError) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.write(number, $0.baseAddress.map { unsafe $0 + written }, $0.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw PrivateFileError(doing: "write", path, errno) }
            written += count
        }
    }

    /// Shortens it, as after a line that was written in part.
    func cut(to length: Int, _ path: String) throws(PrivateFileError) {
        guard ftruncate(number, off_t(length)) == 0 else { throw PrivateFileError(doing: "cut", path, errno) }
    }

    func synchronize(_ path: String) throws(PrivateFileError) {
        guard fsync(number) == 0 else { throw PrivateFileError(doing: "save", path, errno) }
    }

    func readAll(of path: String, maximumBytes: Int) throws(PrivateFileError) -> [UInt8] {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe block.withUnsafeMutableBytes { unsafe Glibc.read(number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw PrivateFileError(doing: "read", path, errno) }
            guard count > 0 else { return bytes }
            bytes.append(contentsOf: block.prefix(count))
            guard bytes.count <= maximumBytes else {
                throw PrivateFileError(doing: "read", path, "it is longer than the \(maximumBytes) bytes allowed")
            }
        }
    }
}
