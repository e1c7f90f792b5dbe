internal import Glibc
internal import Files

/// An open file, closed with its owner. All file calls of this module are here.
struct PosixFile: ~Copyable, Sendable {
    private let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    /// Opens a regular file for reading.
    static func reading(_ path: String) throws(AudioFileError) -> PosixFile {
        do throws(RegularFileError) {
            return PosixFile(descriptor: try RegularFile.open(path, O_RDONLY))
        } catch {
            throw AudioFileError(
                error.systemError == ENOENT ? .notFound : .unreadable, .play, path: path, reason: error.message,
                errno: error.systemError)
        }
    }

    /// Creates a file for its owner alone, or opens the regular file that exists without changing what is in it.
    ///
    /// The file is locked until it is closed, so that no second recording is written to it.
    /// - Parameter played: Files that must not be written to.
    /// - Returns: The file, and whether it was created.
    static func recording(_ path: String, sparing played: [FileIdentity]) throws(AudioFileError) -> Recording {
        let recording = try opened(path, sparing: played)
        if let error = recording.file.restrict() { throw unwritable(path, error) }
        return recording
    }

    /// Finds out whether ``recording(_:sparing:)`` would succeed, and whether a new file has room for `bytes`.
    ///
    /// A file that exists stays as it is, and none is left behind where there was none.
    static func checkRecording(
        _ path: String, writing bytes: [UInt8], sparing played: [FileIdentity]
    ) throws(AudioFileError) {
        let recording = try opened(path, sparing: played)
        guard recording.isNew else { return }
        let error = recording.file.write(bytes, at: 0).error
        remove(path)
        if let error { throw unwritable(path, error) }
    }

    private static func opened(_ path: String, sparing played: [FileIdentity]) throws(AudioFileError) -> Recording {
        let (descriptor, isNew): (Int32, Bool)
        do throws(RegularFileError) {
            (descriptor, isNew) = try openForWriting(path)
        } catch {
            throw AudioFileError(
                error.systemError.map(recordingCode) ?? .unwritable, .record, path: path, reason: error.message,
                errno: error.systemError)
        }
        let file = PosixFile(descriptor: descriptor)
        if let identity = file.identity, played.contains(identity) {
            throw AudioFileError(.inUse, .record, path: path, reason: "it is the file that is played")
        }
        // Some file systems know no locks; there nothing is lost but this check.
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
            throw AudioFileError(.inUse, .record, path: path, reason: "another recording is written to it")
        }
        return Recording(file: file, isNew: isNew)
    }

    private static func unwritable(_ path: String, _ error: SystemError) -> AudioFileError {
        AudioFileError(recordingCode(error.code), .record, path: path, reason: error.message, errno: error.code)
    }

    /// Keeps it to its owner.
    private func restrict() -> SystemError? { fchmod(descriptor, 0o600) == 0 ? nil : SystemError(code: errno) }

    struct Recording: ~Copyable {
        let file: PosixFile
        let isNew: Bool

        consuming func takeFile() -> PosixFile { file }
    }

    /// Removes a file.
    static func remove(_ path: String) { _ = unsafe unlink(path) }

    private static func openForWriting(_ path: String) throws(RegularFileError) -> (Int32, isNew: Bool) {
        do throws(RegularFileError) {
            return (try RegularFile.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW), true)
        } catch {
            guard error.systemError == EEXIST else { throw error }
            return (try RegularFile.open(path, O_WRONLY | O_NOFOLLOW), false)
        }
    }

    /// Which file it is.
    var identity: FileIdentity? { FileIdentity(descriptor: descriptor) }

    /// Hands over the descriptor, which the caller closes.
    consuming func release() -> Int32 {
        let descriptor = descriptor
        discard self
        return descriptor
    }

    /// Reads into `bytes` from `offset` on, as much as the system has in one go.
    ///
    /// - Returns: Bytes read, 0 at the end of the file; or an `errno`.
    func read(into bytes: inout [UInt8], from offset: Int) -> Result<Int, SystemError> {
        while true {
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(descriptor, buffer.baseAddress?.advanced(by: offset), buffer.count - offset)
            }
            if count >= 0 { return .success(count) }
            if errno != EINTR { return .failure(SystemError(code: errno)) }
        }
    }

    /// Moves the reading position; `false` where that is not possible.
    func seek(to offset: Int) -> Bool { lseek(descriptor, offset, SEEK_SET) == offset }

    /// Writes all of `bytes` at `offset`, going on after partial writes.
    ///
    /// - Returns: Bytes that were written, and the error that stopped it.
    func write(_ bytes: [UInt8], at offset: Int) -> (written: Int, error: SystemError?) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe pwrite(
                    descriptor, buffer.baseAddress?.advanced(by: written), buffer.count - written, offset + written)
            }
            if count > 0 {
                written += count
            } else if count < 0, errno == EINTR {
                continue
            } else {
                return (written, SystemError(code: count < 0 ? errno : ENOSPC))
            }
        }
        return (written, nil)
    }

    /// Cuts the file to `length` bytes. Best effort: readers of a WAV tolerate more data than its header claims.
    func truncate(to length: Int) { _ = ftruncate(descriptor, length) }

    /// Brings what was written to the disk.
    func synchronise() -> SystemError? {
        // Some file systems cannot synchronise a file.
        fdatasync(descriptor) == 0 || errno == EINVAL || errno == EROFS ? nil : SystemError(code: errno)
    }

    static func recordingCode(_ code: Int32) -> AudioFileError.Code {
        switch code {
        case ENOSPC, EDQUOT, EFBIG: .full
        case ENOENT: .notFound
        default: .unwritable
        }
    }

    struct SystemError: Error, Equatable {
        let code: Int32
        var message: String { PosixFile.systemMessage(code) }
    }

    static func systemMessage(_ code: Int32) -> String {
        unsafe strerror(code).map { unsafe String(cString: $0) } ?? "unknown error"
    }
}
