/// A lock on a file for one process at a time. The file stays. The lock ends with its process.
public struct LockFile: ~Copyable, Sendable {
    private let file: OpenFile

    /// Locks the file at `path`, which is made if it is missing.
    ///
    /// - Parameter patience: Hundredths of a second for which the thread waits for a process that holds the lock.
    /// - Throws: ``PrivateFileError`` if another process holds the lock, or the file cannot be made.
    public init(_ path: String, patience: Int = 0) throws(PrivateFileError) {
        file = try OpenFile.locked(path, patience: patience)
    }

    /// Locks a file that exists for another purpose. Every process that may read the file may lock it.
    ///
    /// - Throws: ``PrivateFileError`` if another process holds the lock, or the file cannot be read.
    public init(existing path: String) throws(PrivateFileError) {
        file = try OpenFile.locked(path, makesFile: false)
    }
}
