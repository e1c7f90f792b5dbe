public import RegularFiles
internal import Glibc

/// Recordings have another name until they are whole: `call.part.wav` becomes `call.wav`.
///
/// What a killed process leaves under such a name can be played; ``keepLeftovers(in:)`` calls it `call.cut.wav`.
public enum PartFile {
    private static let part = ".part"
    private static let cut = ".cut"

    /// The name of a recording at `path` that is not whole.
    public static func path(of path: String) -> String { path.inserting(part) }

    /// Finds out whether a recording may take the place of what is at `path`, if something is.
    ///
    /// - Parameter played: Files that must not be replaced, under any name.
    public static func check(_ path: String, sparing played: [FileIdentity]) throws(AudioFileError) {
        let descriptor: Int32
        do throws(RegularFileError) {
            descriptor = try RegularFile.open(path, O_WRONLY | O_NOFOLLOW)
        } catch {
            if error.systemError == ENOENT { return }
            throw AudioFileError(
                error.systemError.map(PosixFile.recordingCode) ?? .unwritable, .record, path: path,
                reason: error.message, errno: error.systemError)
        }
        defer { close(descriptor) }
        guard let identity = FileIdentity(descriptor: descriptor), played.contains(identity) else { return }
        throw AudioFileError(.inUse, .record, path: path, reason: "it is the file that is played")
    }

    /// Gives a recording that is whole and on the disk its name. What had the name is replaced.
    public static func complete(_ path: String) throws(AudioFileError) {
        guard unsafe rename(Self.path(of: path), path) == 0 else {
            let code = errno
            throw AudioFileError(
                PosixFile.recordingCode(code), .record, path: path,
                reason: "it cannot be given its name: \(PosixFile.systemMessage(code))", errno: code)
        }
    }

    /// Renames what killed processes have left in a folder from `NAME.part.wav` to `NAME.cut.wav`, so that nobody takes it
    /// for whole and no later recording replaces it. A file that another process still writes stays as it is.
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
                return isAbandoned("\(folder)/\(name)") && moves("\(folder)/\(name)", to: "\(folder)/\(kept)")
                    ? "\(folder)/\(kept)" : nil
            }
            return nil
        }
    }

    /// Whether nobody writes a file: who does has it locked.
    private static func isAbandoned(_ path: String) -> Bool {
        guard let descriptor = try? RegularFile.open(path, O_RDONLY | O_NOFOLLOW) else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }

    /// Renames a file unless the name is taken.
    private static func moves(_ path: String, to other: String) -> Bool {
        guard FileIdentity(path: other) == nil else { return false }
        return unsafe rename(path, other) == 0
    }
}

extension String {
    /// The path with a word before its extension.
    fileprivate func inserting(_ word: String) -> String {
        let name = lastIndex(of: "/").map { index(after: $0) } ?? startIndex
        guard let dot = self[name...].lastIndex(of: "."), dot > name else { return self + word }
        return "\(self[..<dot])\(word)\(self[dot...])"
    }
}
