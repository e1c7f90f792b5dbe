internal import Glibc

/// A file that a command reads as a whole.
enum InputFile {
    /// Files longer than this are refused: a gigabyte is days of a call.
    private static let maximumBytes = 1 << 30

    /// All bytes of the file at `path`.
    static func bytes(of path: String) throws(CommandFailure) -> [UInt8] {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw failure(path) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = unsafe block.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw failure(path) }
            if count == 0 { return bytes }
            guard bytes.count + count <= maximumBytes else {
                throw CommandFailure(.audioFileUnusable, "\(path) is longer than a gigabyte")
            }
            bytes.append(contentsOf: block[..<count])
        }
    }

    private static func failure(_ path: String) -> CommandFailure {
        CommandFailure(.audioFileUnusable, "cannot read \(path): \(unsafe String(cString: strerror(errno)))")
    }
}
