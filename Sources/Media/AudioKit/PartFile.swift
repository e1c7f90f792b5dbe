public import Files
internal import Glibc

/// Recordings have another name until they are whole: `call.part.wav` becomes `call.wav`.
///
/// What a killed process leaves under such a name can be played; ``keepLeftovers(in:)`` calls it `call.cut.wav`.
public enum PartFile {
    private static let part = ".part"
    private static let cut = ".cut"

    /// The name of a recording at `path` that is not whole.
    public static func path(of path: String) -> String { path.inserting(part) }

    /// Whether a path names a recording that is not whole, so that no other recording may have that name.
    public static func isReserved(_ path: String) -> Bool {
        let name = path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...]
        return name.split(separator: ".", omittingEmptySubsequences: false).dropFirst().suffix(2)
            .contains { ".\($0)" == part || ".\($0)" == cut }
    }

    /// Finds out whether a recording may take the place of what is at `path`, if something is.
    ///
    /// - Parameter played: Files that must not be replaced, under any name.
    /// - Returns: The file that is there; nil if there is none.
    @discardableResult
    public static func check(
        _ path: String, sparing played: [FileIdentity]
    ) throws(AudioFileError) -> FileIdentity? {
        guard !isReserved(path) else {
            throw AudioFileError(
                .inUse, .record, path: path, reason: "such names are those of recordings that are not whole")
        }
        let file: OpenFile
        do throws(RegularFileError) {
            file = try RegularFile.open(path, O_WRONLY | O_NOFOLLOW)
        } catch {
            if error.systemError == ENOENT { return nil }
            throw AudioFileError(
                error.systemError.map(PosixFile.recordingCode) ?? .unwritable, .record, path: path,
                reason: error.message, errno: error.systemError)
        }
        guard let identity = FileIdentity(descriptor: file.number) else { return nil }
        guard !played.contains(identity) else {
            throw AudioFileError(.inUse, .record, path: path, reason: "it is the file that is played")
        }
        return identity
    }

    /// Names that are tried for a recording whose own is taken.
    private static let mostNames = 1_000

    /// Gives a recording that is whole and on the disk its name. If another file has got that name meanwhile, the recording
    /// has a number behind its name: `call-2.wav`.
    ///
    /// - Parameter earlier: What had the name when the recording began, which is replaced.
    /// - Returns: The name.
    public static func complete(
        _ path: String, replacing earlier: FileIdentity? = nil
    ) throws(AudioFileError) -> String {
        let part = Self.path(of: path)
        if let earlier, FileIdentity(path: path) == earlier {
            let code = replace(path, by: part)
            guard code == 0 else { throw nameless(path, code) }
            return path
        }
        for number in 1...mostNames {
            let name = number == 1 ? path : path.inserting("-\(number)")
            let code = move(part, to: name)
            if code == 0 { return name }
            guard code == EEXIST else { throw nameless(path, code) }
        }
        throw nameless(path, EEXIST)
    }

    /// Removes a recording that is not whole.
    public static func discard(_ path: String) { PosixFile.remove(Self.path(of: path)) }

    private static func nameless(_ path: String, _ code: Int32) -> AudioFileError {
        AudioFileError(
            PosixFile.recordingCode(code), .record, path: path,
            reason: "it cannot be given its name: \(SystemError(code))", errno: code)
    }

    /// Renames a file unless the name is taken.
    ///
    /// - Returns: 0, or why not: an `errno`.
    private static func move(_ path: String, to other: String) -> Int32 {
        // Unlike a rename, a link never replaces anything.
        if unsafe link(path, other) == 0 {
            PosixFile.remove(path)
            return 0
        }
        let code = errno
        // File systems without links, such as those of memory cards, and security modules that allow none.
        guard [EPERM, EACCES, EOPNOTSUPP, ENOSYS].contains(code) else { return code }
        guard FileIdentity(path: other) == nil else { return EEXIST }
        return replace(other, by: path)
    }

    /// Renames a file, which takes the place of what has the name.
    ///
    /// - Returns: 0, or why not: an `errno`.
    private static func replace(_ path: String, by other: String) -> Int32 {
        unsafe rename(other, path) == 0 ? 0 : errno
    }

    /// Renames what killed processes have left in a folder from `NAME.part.wav` to `NAME.cut.wav`, so that it is known as
    /// incomplete and no later recording replaces it. A file that another process still writes stays as it is.
    ///
    /// - Returns: The new names.
    public static func keepLeftovers(in folder: String) -> [String] {
        guard let directory = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        // The name ends with a zero byte.
        while let entry = unsafe readdir(directory) {
            names.append(
                unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                    unsafe String(cString: UnsafeRawPointer(name).assumingMemoryBound(to: CChar.self))
                })
        }
        return names.sorted().compactMap { name in
            for container in RecordingFormat.Container.allCases {
                let ending = "\(part).\(container.rawValue)"
                guard name.hasSuffix(ending), name.count > ending.count else { continue }
                let kept = name.dropLast(ending.count) + "\(cut).\(container.rawValue)"
                return isAbandoned("\(folder)/\(name)") && move("\(folder)/\(name)", to: "\(folder)/\(kept)") == 0
                    ? "\(folder)/\(kept)" : nil
            }
            return nil
        }
    }

    /// Whether no process writes a file: a writer holds its lock.
    private static func isAbandoned(_ path: String) -> Bool {
        guard let file = try? RegularFile.open(path, O_RDONLY | O_NOFOLLOW) else { return false }
        return flock(file.number, LOCK_EX | LOCK_NB) == 0
    }
}

extension String {
    /// The path with this before its extension.
    fileprivate func inserting(_ word: String) -> String {
        let name = lastIndex(of: "/").map { index(after: $0) } ?? startIndex
        guard let dot = self[name...].lastIndex(of: "."), dot > name else { return self + word }
        return "\(self[..<dot])\(word)\(self[dot...])"
    }
}
