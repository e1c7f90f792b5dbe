internal import Glibc

/// An open file, closed with its owner. All file calls of this module are here.
struct PosixFile: ~Copyable, Sendable {
    private let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    /// Opens a file for reading.
    static func reading(_ path: String) throws(AudioFileError) -> PosixFile {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            throw AudioFileError(
                code == ENOENT ? .notFound : .unreadable, .play, path: path, reason: systemMessage(code), errno: code)
        }
        return PosixFile(descriptor: descriptor)
    }

    /// Creates a file, or empties the one that is there.
    static func creating(_ path: String) throws(AudioFileError) -> PosixFile {
        let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            let code = errno
            throw AudioFileError(
                PosixFile.recordingCode(code), .record, path: path, reason: systemMessage(code), errno: code)
        }
        return PosixFile(descriptor: descriptor)
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

    /// Moves the reading position; `false` where that is not possible, such as in a pipe.
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
        // A pipe or a device cannot be synchronised, and need not be.
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
