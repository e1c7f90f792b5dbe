internal import Glibc
internal import Files

/// Files and folders. What is checked depends on how the configuration is read: see ``FileChecks``.
extension ConfigSection {
    /// Which files are checked.
    var fileChecks: FileChecks { origin.fileChecks }

    /// The path of a file, taken from the configuration's folder unless it is absolute.
    ///
    /// - Parameter readable: Also note a problem if it is no regular file that may be read.
    func path(_ key: String, readable: Bool = false, _ problems: inout [ConfigProblem]) -> String? {
        guard let text = string(key, &problems) else { return nil }
        let path = resolve(text)
        guard readable, fileChecks != .none, let failure = SmallFile.unreadable(path) else { return path }
        problems.append(problem(key, "\"\(path)\" cannot be read: \(failure.message)"))
        return nil
    }

    /// Warns if every user of this machine may read the file at `path`, which holds a secret.
    func warnOfReaders(_ key: String, _ path: String, _ problems: inout [ConfigProblem]) {
        guard fileChecks != .none, RegularFile.isReadableByAll(path) else { return }
        problems.append(
            warning(key, "every user of this machine may read \"\(path)\"; `chmod 600` keeps it to its owner"))
    }

    /// The path of a file that the program writes to, and creates if it does not exist.
    ///
    /// - Parameter advice: What to try if it cannot be written to, a whole sentence.
    func outputFile(_ key: String, advice: String = "", _ problems: inout [ConfigProblem]) -> String? {
        guard let path = path(key, &problems) else { return nil }
        return note(key, path, advice: advice, &problems) { path throws(RegularFileError) in
            if unsafe access(path, F_OK) == 0 {
                try RegularFile.check(path)
                try RegularFile.checkAccess(path, R_OK | W_OK)
            } else {
                try WritableFolder.checkExisting(WritableFolder.parent(of: path))
            }
        }
    }

    /// The path of a folder that the program writes files into, and makes if it is not there.
    func outputFolder(_ key: String, _ problems: inout [ConfigProblem]) -> String? {
        guard let path = path(key, &problems) else { return nil }
        return note(key, path, &problems) { path throws(RegularFileError) in try WritableFolder.check(path) }
    }

    /// The path of a socket that the program listens at. Its folder is made if it is not there, but none above that.
    func outputSocket(_ key: String, _ problems: inout [ConfigProblem]) -> String? {
        guard let path = path(key, &problems) else { return nil }
        return note(key, path, &problems) { path throws(RegularFileError) in
            let folder = WritableFolder.parent(of: path)
            let exists = unsafe access(folder, F_OK) == 0
            try WritableFolder.checkExisting(exists ? folder : WritableFolder.parent(of: folder))
            try RegularFile.checkSocket(path)
        }
    }

    /// A program and its arguments; the program is searched like in a shell.
    func command(_ key: String, _ problems: inout [ConfigProblem]) -> [String]? {
        guard let words = list(key, &problems) else { return nil }
        guard let program = words.first, !program.isEmpty else {
            problems.append(problem(key, "must name a program"))
            return nil
        }
        // As in a shell: a name without a slash is looked up in PATH. Any other is a path.
        let path = program.contains("/") ? resolve(program) : program
        if fileChecks == .all, !Self.isThere(path, path: origin.environment("PATH") ?? "/usr/bin:/bin") {
            let place = path == program ? "" : ": \"\(path)\""
            let message =
                if program.contains("/"), RegularFile.isThere(path) {
                    "\"\(path)\" may not be run; `chmod +x` allows it"
                } else {
                    "there is no program \"\(program)\" that may be run\(place)"
                }
            problems.append(problem(key, message))
        }
        return [path] + words.dropFirst()
    }

    func resolve(_ path: String) -> String { path.hasPrefix("/") ? path : origin.directory + path }

    private func note(
        _ key: String, _ path: String, advice: String = "", _ problems: inout [ConfigProblem],
        _ check: (String) throws(RegularFileError) -> Void
    ) -> String? {
        guard fileChecks == .all else { return path }
        do throws(RegularFileError) {
            try check(path)
            return path
        } catch {
            let more = advice.isEmpty ? "" : ". \(advice)"
            problems.append(problem(key, "\"\(path)\" cannot be written to: \(error.message)\(more)"))
            return nil
        }
    }

    private static func isThere(_ program: String, path: String) -> Bool {
        let places =
            program.contains("/") ? [program] : path.split(separator: ":").map { "\($0)/\(program)" }
        return places.contains { RegularFile.mayBeRun($0) }
    }
}
