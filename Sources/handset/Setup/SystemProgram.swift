internal import Glibc

/// Programs of the system that a command ends as.
enum SystemProgram {
    /// What a shell prints that runs these commands, on standard output and standard error; at most 4 MB. A command that there is
    /// not says so there.
    ///
    /// - Parameter commands: Never words from outside.
    static func output(of commands: String) -> String {
        guard let stream = unsafe popen("exec 2>&1; export LC_ALL=C; \(commands)", "r") else {
            return "cannot run a shell\n"
        }
        defer { unsafe pclose(stream) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < 4_000_000 {
            let count = unsafe fread(&block, 1, block.count, stream)
            guard count > 0 else { break }
            bytes += block.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Goes on as the program that `words` name, found by PATH, with its arguments.
    ///
    /// - Throws: ``CommandFailure`` if that cannot be; otherwise this does not return.
    static func become(_ words: [String]) throws(CommandFailure) {
        // A program inherits which signals are blocked.
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe pthread_sigmask(SIG_SETMASK, &none, nil)
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
        let code = unsafe execvp(words[0], &arguments) < 0 ? errno : 0
        throw CommandFailure(
            .failed, "cannot run \(words[0]): \(unsafe String(cString: strerror(code))). Is it installed?")
    }
}
