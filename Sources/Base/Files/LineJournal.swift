internal import Glibc

/// A file to which lines are appended, each on disk before ``append(_:)`` returns; bounded by rotating files.
///
/// When a line would make the file longer than `maximumBytes` the file becomes `PATH.1`, what was `PATH.1` becomes
/// `PATH.2`, and so on; the oldest of `keptFiles` is dropped. For one process and one thread at a time.
public struct LineJournal: Sendable {
    /// The file of the newest lines.
    public let path: String
    /// Bytes in one file at most, unless a single line is longer.
    public let maximumBytes: Int
    /// How many older files are kept.
    public let keptFiles: Int

    /// Opens a journal. A line that a crash left unfinished is cut off.
    public init(path: String, maximumBytes: Int = 4_194_304, keptFiles: Int = 4) throws(PrivateFileError) {
        self.path = path
        self.maximumBytes = max(1, maximumBytes)
        self.keptFiles = max(0, keptFiles)
        let file = try OpenFile(opening: path, O_RDWR | O_CREAT | O_APPEND, doing: "open")
        try file.makePrivate(path)
        let bytes = try file.readAll(of: path, maximumBytes: .max)
        let whole = bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        if whole < bytes.count { try file.cut(to: whole, path) }
        try file.synchronize(path)
        try PrivateFile.synchronizeFolder(of: path)
    }

    /// Adds lines, which must hold no line break, and returns when they are on disk.
    public func append(_ lines: [String]) throws(PrivateFileError) {
        let bytes = lines.flatMap { Array($0.utf8) + [UInt8(ascii: "\n")] }
        guard !bytes.isEmpty else { return }
        var file = try open()
        let length = try file.length(path)
        if length > 0, length + bytes.count > maximumBytes {
            try rotate()
            file = try open()
        }
        let before = try file.length(path)
        do throws(PrivateFileError) {
            try file.write(bytes, to: path)
            try file.synchronize(path)
        } catch {
            // Half a line would spoil the next one.
            try? file.cut(to: before, path)
            throw error
        }
    }

    /// All whole lines there are, the oldest first.
    public func lines() throws(PrivateFileError) -> [String] { try Self.lines(in: path, keptFiles: keptFiles) }

    /// All whole lines of a journal that another process may be writing, the oldest first.
    public static func lines(in path: String, keptFiles: Int = 4) throws(PrivateFileError) -> [String] {
        var all: [String] = []
        for path in files(path, keptFiles).reversed() {
            guard let bytes = try PrivateFile.read(path, maximumBytes: .max) else { continue }
            var parts = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            parts.removeLast()  // What follows the last line break is no whole line.
            all += parts.map { String(decoding: $0, as: UTF8.self) }
        }
        return all
    }

    /// Removes the lines that `keeps` refuses. A crash at any point leaves each file as it was or as it is to be.
    public func prune(keeping keeps: (String) -> Bool) throws(PrivateFileError) {
        for file in files {
            guard let bytes = try PrivateFile.read(file, maximumBytes: .max) else { continue }
            let lines = bytes.split(separator: UInt8(ascii: "\n"))
            let kept = lines.filter { keeps(String(decoding: $0, as: UTF8.self)) }
            guard kept.count < lines.count else { continue }
            if kept.isEmpty, file != path {
                try PrivateFile.remove(file)
            } else {
                try PrivateFile.replace(file, with: kept.flatMap { $0 + [UInt8(ascii: "\n")] })
            }
        }
    }

    /// Removes everything.
    public func clear() throws(PrivateFileError) {
        for path in files.dropFirst() { try PrivateFile.remove(path) }
        try PrivateFile.replace(path, with: [])
    }

    /// The newest file, then the older ones.
    private var files: [String] { Self.files(path, keptFiles) }

    private static func files(_ path: String, _ keptFiles: Int) -> [String] {
        [path] + (0..<keptFiles).map { "\(path).\($0 + 1)" }
    }

    private func open() throws(PrivateFileError) -> OpenFile {
        try OpenFile(opening: path, O_RDWR | O_CREAT | O_APPEND, doing: "open")
    }

    private func rotate() throws(PrivateFileError) {
        let files = files
        guard files.count > 1 else { return try PrivateFile.remove(path) }
        for index in (1..<files.count).reversed() {
            do throws(PrivateFileError) {
                try PrivateFile.move(files[index - 1], to: files[index])
            } catch  where error.isAboutNothingThere {
                continue  // There are not that many yet.
            }
        }
    }
}
