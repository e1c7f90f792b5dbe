internal import Glibc

/// One open file, closed by its `deinit`. A call that a signal interrupts is made again.
public struct OpenFile: ~Copyable, Sendable {
    /// Bytes that are read at once.
    private static let blockBytes = 16_384

    /// The descriptor.
    public let number: Int32

    /// Takes over a descriptor that is open.
    public init(adopting number: Int32) { self.number = number }

    /// Opens what is at `path`, which may be a pipe, a device or a folder, too; see ``RegularFile/open(_:_:mode:)``. Programs
    /// that this one starts do not have it.
    ///
    /// - Parameters:
    ///   - flags: Those of `open(2)`.
    ///   - mode: The rights of a file that this creates.
    public init(_ path: String, _ flags: Int32, mode: UInt32 = 0o600) throws(SystemError) {
        let number = unsafe open(path, flags | O_CLOEXEC, mode_t(mode))
        guard number >= 0 else { throw SystemError.last }
        self.number = number
    }

    /// Opens what has the name `name` in a folder.
    package init(_ name: String, in folder: borrowing OpenFile, _ flags: Int32) throws(SystemError) {
        let number = unsafe openat(folder.number, name, flags | O_CLOEXEC, mode_t(0o600))
        guard number >= 0 else { throw SystemError.last }
        self.number = number
    }

    deinit { close(number) }

    /// Hands over the descriptor, which the caller closes.
    public consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    /// Reads into `bytes` from `offset` on, as much as the system has in one go.
    ///
    /// - Returns: Bytes read; 0 at the end of the file.
    public func read(into bytes: inout [UInt8], from offset: Int = 0) throws(SystemError) -> Int {
        while true {
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(number, buffer.baseAddress?.advanced(by: offset), buffer.count - offset)
            }
            if count >= 0 { return count }
            if errno != EINTR { throw SystemError.last }
        }
    }

    /// Reads from the file's byte `position` on, as much as the system has in one go. For one caller at a time: it moves the present
    /// position.
    ///
    /// - Returns: Bytes read, at the front of `bytes`; 0 at the end of the file.
    public func read(into bytes: inout [UInt8], atPosition position: Int) throws(SystemError) -> Int {
        guard lseek(number, off_t(position), SEEK_SET) >= 0 else { throw SystemError.last }
        return try read(into: &bytes)
    }

    /// Reads to the end. Of 16 KB or less no copy stays behind in memory that was freed.
    ///
    /// - Returns: nil if there are more than `maximumBytes`.
    public func readAll(maximumBytes: Int) throws(SystemError) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(2 * Self.blockBytes)
        while true {
            let end = bytes.count
            bytes += repeatElement(0, count: Self.blockBytes)
            let count = try read(into: &bytes, from: end)
            bytes.removeLast(Self.blockBytes - count)
            if count == 0 { return bytes }
            guard bytes.count <= maximumBytes else { return nil }
        }
    }

    /// Writes all of `bytes` at the present position, going on after partial writes.
    public func write(_ bytes: [UInt8]) throws(SystemError) {
        if let error = writeAll(bytes, at: nil).error { throw error }
    }

    /// Writes all of `bytes` at `offset`, going on after partial writes.
    ///
    /// - Returns: Bytes that were written, and the error that stopped it.
    public func write(_ bytes: [UInt8], at offset: Int) -> (written: Int, error: SystemError?) {
        writeAll(bytes, at: offset)
    }

    private func writeAll(_ bytes: [UInt8], at offset: Int?) -> (written: Int, error: SystemError?) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
                guard let offset else { return unsafe Glibc.write(number, rest.baseAddress, rest.count) }
                return unsafe pwrite(number, rest.baseAddress, rest.count, offset + written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return (written, count < 0 ? .last : SystemError(ENOSPC)) }
            written += count
        }
        return (written, nil)
    }
}

/// The same for files of one's own, with errors that name them.
extension OpenFile {
    init(opening path: String, _ flags: Int32, doing activity: String) throws(PrivateFileError) {
        self.init(adopting: try Self.number(path, flags, doing: activity))
    }

    private static func number(
        _ path: String, _ flags: Int32, doing activity: String
    ) throws(PrivateFileError) -> Int32 {
        if flags & O_DIRECTORY != 0 {
            do throws(SystemError) {
                return try OpenFile(path, flags).release()
            } catch {
                throw PrivateFileError(doing: activity, path, error.code)
            }
        }
        do throws(RegularFileError) {
            return try RegularFile.open(path, flags).release()
        } catch {
            throw error.systemError.map { PrivateFileError(doing: activity, path, $0) }
                ?? PrivateFileError(doing: activity, path, error.message)
        }
    }

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
        do throws(SystemError) {
            try write(bytes)
        } catch {
            throw PrivateFileError(doing: "write", path, error.code)
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
        do throws(SystemError) {
            if let bytes = try readAll(maximumBytes: maximumBytes) { return bytes }
        } catch {
            throw PrivateFileError(doing: "read", path, error.code)
        }
        throw PrivateFileError(doing: "read", path, "it is longer than the \(maximumBytes) bytes allowed")
    }
}
