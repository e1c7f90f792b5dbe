/// A lock that one process at a time can have: on a file, which is made and stays. It ends with its process.
public struct LockFile: ~Copyable, Sendable {
    private let file: FileDescriptor

    /// Locks the file at `path`.
    ///
    /// - Throws: ``PrivateFileError`` if another process has it, or the file cannot be made.
    public init(_ path: String) throws(PrivateFileError) {
        file = try FileDescriptor(locking: path)
    }
}
