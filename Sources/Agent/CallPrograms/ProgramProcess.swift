internal import Files
internal import AudioPort
internal import CPrograms
internal import Glibc

/// A program could not be started.
public struct ProgramStartError: Error, Sendable, CustomStringConvertible {
    /// What was tried, what the system said, and what to try.
    public let description: String
}

/// A child process and our ends of its descriptors, none of which ever blocks. Its owner must reap it (``reap()``)
/// before releasing it.
///
/// The program reads the caller's sound from descriptor 0, writes its own to 1 and log lines to 2, and has a socket for
/// events and commands at 3; no other descriptor is open. It is started without a shell and leads a process group,
/// which ends with it. So does what it starts in other groups and sessions, as far as that is found
/// (docs/security.md, "Programs in calls").
struct ProgramProcess: ~Copyable {
    private let id: pid_t
    private let mark: UInt64
    private var input: Int32
    private var output: Int32
    private var errors: Int32
    private var events: Int32

    /// The result of one read.
    enum Reading {
        case bytes([UInt8])
        /// Nothing now.
        case nothing
        /// Nothing ever again.
        case end
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - words: The program, which is searched in PATH, and its arguments.
    ///   - inputBytes: About how many bytes may wait until it reads them.
    ///   - withheld: Variables of this process that it does not inherit; an asterisk at the end of a name is for any rest.
    ///   - given: Variables that it inherits nevertheless.
    init(
        _ words: [String], inputBytes: Int32, withholding withheld: [String] = [], giving given: [String] = []
    ) throws(ProgramStartError) {
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        var withheld = unsafe withheld.map { unsafe strdup($0) } + [nil]
        var given = unsafe given.map { unsafe strdup($0) } + [nil]
        defer { unsafe (arguments + withheld + given).forEach { unsafe free($0) } }
        var program = handset_program()
        let result = unsafe handset_program_start(&arguments, &withheld, &given, inputBytes, &program)
        guard result == 0 else { throw Self.failure(of: words, -result) }
        (id, mark) = (program.process, program.mark)
        (input, output) = (program.input, program.output)
        (errors, events) = (program.errors, program.events)
    }

    /// Starts the program of a plan. About 0.5 s of sound wait for it, in whole pages.
    init(_ plan: ProgramPlan) throws(ProgramStartError) {
        try self.init(
            plan.command, inputBytes: Int32(max(4_096, plan.format.rate.rawValue * plan.format.sampleBytes / 2)),
            withholding: Self.ownVariables + plan.withheldVariables.sorted(), giving: plan.environment)
    }

    /// What the service manager gives this process alone: its credentials, and how it reports to it.
    static let ownVariables = ["CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_*", "LISTEN_*"]

    deinit { for end in [input, output, errors, events] where end >= 0 { close(end) } }

    private static func failure(of words: [String], _ code: Int32) -> ProgramStartError {
        let said = SystemError(code)
        let hint =
            switch code {
            case ENOENT where isThere(words.first ?? ""):
                "The file exists, but the interpreter that its first line names after #! does not."
            case ENOENT: "A name without a slash is looked for in PATH."
            case EACCES: "It must be an executable file."
            case EMFILE, ENFILE: "Raise the limit on open files (ulimit -n, or LimitNOFILE= in the unit)."
            case EAGAIN, ENOMEM: "Raise the limit on processes (ulimit -u, or TasksMax= in the unit)."
            default: "See behaviour.command in the configuration."
            }
        return ProgramStartError(description: "cannot start the program \"\(words.first ?? "")\": \(said). \(hint)")
    }

    /// Whether a program that is named by its path exists.
    private static func isThere(_ program: String) -> Bool {
        unsafe program.contains("/") && access(program, F_OK) == 0
    }

    /// Has a program that closes its end not end this process: for each thread that writes to programs. Programs start without it.
    static func blockPipeSignals() {
        var pipes = sigset_t()
        unsafe sigemptyset(&pipes)
        unsafe sigaddset(&pipes, SIGPIPE)
        unsafe pthread_sigmask(SIG_BLOCK, &pipes, nil)
    }

    // MARK: Its descriptors
    // All are mutating, so that they can be called on an optional process: Swift borrows no optional in place
    // otherwise.

    /// Descriptors for a wait; -1 if the program has closed its end.
    var descriptors: (output: Int32, errors: Int32, events: Int32) { mutating get { (output, errors, events) } }

    /// Reads what the program has written, up to `limit` bytes.
    mutating func readOutput(_ limit: Int) -> Reading { Self.read(&output, limit) }

    /// Waits until there is something to read of what the program writes, or it has closed its end.
    mutating func waitForOutput(milliseconds: Int32) {
        var watched = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
        _ = unsafe poll(&watched, 1, milliseconds)
    }

    /// Reads what it has to say to the log.
    mutating func readErrors(_ limit: Int) -> Reading { Self.read(&errors, limit) }

    /// Reads its commands.
    mutating func readCommands(_ limit: Int) -> Reading { Self.read(&events, limit) }

    /// Bytes that the program has written and that are unread.
    var unreadBytes: Int { mutating get { output >= 0 ? Int(handset_program_unread(output)) : 0 } }

    /// Bytes of sound that the program has been given and has not read.
    var unheardBytes: Int { mutating get { input >= 0 ? Int(handset_program_unread(input)) : 0 } }

    /// Gives the program as many bytes of sound as it has room for.
    ///
    /// - Returns: How many; nil if it takes none any more.
    mutating func writeInput(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard input >= 0 else { return nil }
        let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(input, $0.baseAddress, $0.count) }
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// Gives the program as many bytes of events as it has room for.
    ///
    /// - Returns: How many; nil if it takes none any more.
    mutating func writeEvents(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard events >= 0 else { return nil }
        let count = unsafe bytes.withUnsafeBytes {
            unsafe send(events, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// Lets the program read the end of the caller's sound.
    mutating func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }

    private static func read(_ descriptor: inout Int32, _ limit: Int) -> Reading {
        guard descriptor >= 0 else { return .end }
        var bytes = [UInt8](repeating: 0, count: max(1, limit))
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
        if count > 0 { return .bytes(Array(bytes.prefix(count))) }
        if count < 0, errno == EAGAIN || errno == EINTR { return .nothing }
        close(descriptor)
        descriptor = -1
        return .end
    }

    // MARK: Its end

    /// Sends a signal to the program and to all that it started.
    mutating func signal(_ number: Int32) { kill(-id, number) }

    /// How the process has ended; nil while it runs. What it started ends with it. Not to be asked again after that.
    mutating func reap() -> ProgramExit? {
        var status: Int32 = 0
        guard unsafe handset_program_ended(id, mark, &status) else { return nil }
        // The exit code is in the second byte, and the signal that ended it in the first seven bits (wait(2)).
        if status == 0 { return .finished }
        return .failed(
            status & 0x7F == 0 ? "it ended with exit code \(status >> 8 & 0xFF)" : "signal \(status & 0x7F) ended it")
    }
}
