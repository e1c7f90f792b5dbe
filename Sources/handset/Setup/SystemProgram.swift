internal import Glibc

/// Programs of the system that a command ends as.
enum SystemProgram {
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
