internal import Glibc
internal import Files

/// An open file, closed with its owner. All file calls of this module are here.
struct PosixFile: ~Copyable, Sendable {
    private let file: OpenFile

    private init(_ file: consuming OpenFile) { self.file = file }

    /// Opens a regular file for reading.
    static func reading(_ path: String) throws(AudioFileError) -> PosixFile {
        do throws(RegularFileError) {
            return PosixFile(try RegularFile.open(path, O_RDONLY))
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
        var isNew = true
        let file: PosixFile
        do throws(RegularFileError) {
            file = PosixFile(try openForWriting(path, &isNew))
        } catch {
            throw AudioFileError(
                error.systemError.map(recordingCode) ?? .unwritable, .record, path: path, reason: error.message,
                errno: error.systemError)
        }
        if let identity = file.identity, played.contains(identity) {
            throw AudioFileError(.inUse, .record, path: path, reason: "it is the file that is played")
        }
        // Some file systems know no locks; there nothing is lost but this check.
        if flock(file.file.number, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
            throw AudioFileError(.inUse, .record, path: path, reason: "another recording is written to it")
        }
        return Recording(file: file, isNew: isNew)
    }

    private static func unwritable(_ path: String, _ error: SystemError) -> AudioFileError {
        AudioFileError(recordingCode(error.code), .record, path: path, reason: "\(error)", errno: error.code)
    }

    /// Keeps it to its owner.
    private func restrict() -> SystemError? { fchmod(file.number, 0o600) == 0 ? nil : .last }

    struct Recording: ~Copyable {
        let file: PosixFile
        let isNew: Bool

        consuming func takeFile() -> PosixFile { file }
    }

    /// Removes a file.
    static func remove(_ path: String) { _ = unsafe unlink(path) }

    private static func openForWriting(_ path: String, _ isNew: inout Bool) throws(RegularFileError) -> OpenFile {
        do throws(RegularFileError) {
            return try RegularFile.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
        } catch {
            guard error.systemError == EEXIST else { throw error }
            isNew = false
            return try RegularFile.open(path, O_WRONLY | O_NOFOLLOW)
        }
    }

    /// Which file it is.
    var identity: FileIdentity? { FileIdentity(descriptor: file.number) }

    /// Hands over the descriptor, which the caller closes.
    consuming func release() -> Int32 { file.release() }

    /// Reads into `bytes` from `offset` on, as much as the system has in one go.
    ///
    /// - Returns: Bytes read, 0 at the end of the file.
    func read(into bytes: inout [UInt8], from offset: Int) throws(SystemError) -> Int {
        try file.read(into: &bytes, from: offset)
    }

    /// Moves the reading position; `false` where that is not possible.
    func seek(to offset: Int) -> Bool { lseek(file.number, offset, SEEK_SET) == offset }

    /// Writes all of `bytes` at `offset`, going on after partial writes.
    ///
    /// - Returns: Bytes that were written, and the error that stopped it.
    func write(_ bytes: [UInt8], at offset: Int) -> (written: Int, error: SystemError?) {
        file.write(bytes, at: offset)
    }

    /// Cuts the file to `length` bytes. Best effort: readers of a WAV tolerate more data than its header claims.
    func truncate(to length: Int) { _ = ftruncate(file.number, length) }

    /// Brings what was written to the disk.
    func synchronise() -> SystemError? {
        // Some file systems cannot synchronise a file.
        fdatasync(file.number) == 0 || errno == EINVAL || errno == EROFS ? nil : .last
    }

    static func recordingCode(_ code: Int32) -> AudioFileError.Code {
        switch code {
        case ENOSPC, EDQUOT, EFBIG: .full
        case ENOENT: .notFound
        default: .unwritable
        }
    }
}
