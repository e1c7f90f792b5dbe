internal import Files
internal import Glibc

/// A file that a command reads as a whole.
enum InputFile {
    /// Files longer than this are refused: a gigabyte is days of a call.
    private static let maximumBytes = 1 << 30

    /// All bytes of the file at `path`.
    static func bytes(of path: String) throws(CommandFailure) -> [UInt8] {
        do throws(SystemError) {
            if let bytes = try OpenFile(path, O_RDONLY).readAll(maximumBytes: maximumBytes) { return bytes }
        } catch {
            throw CommandFailure(
                .audioFileUnusable,
                "cannot read \(path): \(error). Check the path, and that this user may read it.")
        }
        throw CommandFailure(
            .audioFileUnusable, "cannot read \(path): it is longer than a gigabyte. Give a shorter file.")
    }
}
