internal import Files

/// A file that only its owner may read (mode 0600), written sequentially up to a maximum size.
///
/// Blocks on the disk: for control and file threads. The first failure is thrown, once; afterwards nothing is written,
/// and earlier data stays as it is.
public struct AppendedFile: ~Copyable, Sendable {
    private let path: String
    private let file: PosixFile
    private let maximumBytes: Int
    private var bytes = 0
    private var isClosed = false

    /// Creates the file, or overwrites an existing regular file. A symbolic link is not followed, and anything that is
    /// not a regular file is refused.
    ///
    /// - Parameters:
    ///   - start: The beginning of the file.
    ///   - maximumBytes: The maximum size; nothing is written beyond it.
    public init(path: String, beginningWith start: [UInt8], maximumBytes: Int) throws(AudioFileError) {
        let recording = try PosixFile.recording(path, sparing: [])
        if let error = recording.file.write(start, at: 0).error {
            if recording.isNew { PosixFile.remove(path) }
            throw Self.error(error, path)
        }
        recording.file.truncate(to: start.count)
        file = recording.takeFile()
        bytes = start.count
        self.path = path
        self.maximumBytes = maximumBytes
    }

    /// Finds out whether a file could begin at `path` now. What is there stays as it is, and nothing is left behind.
    public static func check(path: String) throws(AudioFileError) {
        try PosixFile.checkRecording(path, writing: [0], sparing: [])
    }

    /// Writes more.
    public mutating func append(_ more: [UInt8]) throws(AudioFileError) {
        guard !isClosed, !more.isEmpty else { return }
        guard bytes + more.count <= maximumBytes else {
            isClosed = true
            throw AudioFileError(.full, .record, path: path, reason: "it has reached \(maximumBytes >> 20) MiB")
        }
        let result = file.write(more, at: bytes)
        bytes += result.written
        if let error = result.error {
            isClosed = true
            throw Self.error(error, path)
        }
    }

    /// Brings what was written to the disk. Later appends do nothing.
    public mutating func finish() throws(AudioFileError) {
        guard !isClosed else { return }
        isClosed = true
        if let error = file.synchronise() { throw Self.error(error, path) }
    }

    private static func error(_ error: SystemError, _ path: String) -> AudioFileError {
        AudioFileError(
            PosixFile.recordingCode(error.code), .record, path: path, reason: "\(error)", errno: error.code)
    }
}
