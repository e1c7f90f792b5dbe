internal import Files
internal import Glibc
internal import Synchronization

/// Lines to the person at the terminal. A line goes out in one call, so that threads do not mix theirs.
enum Terminal {
    /// Why a line of the result could not be written; 0 while none was lost.
    private static let resultError = Atomic<Int32>(0)

    /// Prints a line of the command's result.
    static func print(_ line: String) { writeResult(line + "\n") }

    /// Writes a part of the command's result. A reader that is gone wants no more of it.
    static func writeResult(_ text: String) {
        let error = write(text, to: STDOUT_FILENO)
        if error != 0, error != EPIPE { resultError.store(error, ordering: .relaxed) }
    }

    /// Checks that all of the result was written.
    static func expectWholeResult() throws(CommandFailure) {
        let error = resultError.load(ordering: .relaxed)
        guard error != 0 else { return }
        throw CommandFailure(.failed, "cannot write the result to standard output: \(SystemError(error))")
    }

    /// Prints a line of progress, warning or error.
    static func printError(_ line: String) { write(line + "\n", to: STDERR_FILENO) }

    /// Columns and rows of the terminal at standard output; nil if there is none, or if it shows nothing but lines.
    static var size: (columns: Int, rows: Int)? {
        var size = winsize()
        let term = unsafe getenv("TERM").map { unsafe String(cString: $0) } ?? "dumb"
        guard isatty(STDOUT_FILENO) == 1, term != "dumb",
            unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0
        else { return nil }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Puts a question on standard error, and reads a line of standard input that the terminal does not show.
    ///
    /// - Returns: Nil at the end of the input.
    static func readUnseen(_ question: String) -> String? {
        let shown = settings
        if let shown {
            var unseen = shown
            unseen.c_lflag &= ~tcflag_t(ECHO)
            apply(unseen)
            // An interruption leaves no terminal behind that shows nothing.
            Shutdown.onFirstSignal {
                apply(shown)
                _exit(ExitStatus.interrupted.rawValue)
            }
        }
        defer {
            if let shown {
                apply(shown)
                write("\n", to: STDERR_FILENO)
            }
        }
        // The question comes when what is typed is no longer shown.
        write(question, to: STDERR_FILENO)
        return readLine(strippingNewline: true)
    }

    /// How the terminal at standard input behaves; nil if that is none.
    fileprivate static var settings: termios? {
        var settings = termios()
        // Fills in one structure.
        return unsafe tcgetattr(STDIN_FILENO, &settings) == 0 ? settings : nil
    }

    fileprivate static func apply(_ settings: termios) {
        var settings = settings
        unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
    }

    /// Writes all of `text`, and waits for a reader that does not keep up.
    ///
    /// - Returns: Why it was given up; 0 if all was written.
    @discardableResult
    static func write(_ text: String, to descriptor: Int32) -> Int32 {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if count < 0, errno == EAGAIN {
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&room, 1, -1)
            } else if count == 0 || errno != EINTR {
                return count == 0 ? EIO : errno
            }
        }
        return 0
    }
}

/// A terminal of which a command has the whole screen, and each key as it is pressed. It is as it was when this is ended.
final class TerminalScreen: Sendable {
    private let shown: termios
    private let isEnded = Atomic(false)

    /// Takes over the terminal at standard input and output; nil if they are none.
    init?() {
        guard Terminal.size != nil, let shown = Terminal.settings else { return nil }
        self.shown = shown
        var keys = shown
        keys.c_lflag &= ~tcflag_t(ECHO | ICANON)
        Terminal.apply(keys)
        // The other screen, without a cursor: what the terminal showed is there again at the end.
        Terminal.writeResult("\u{1B}[?1049h\u{1B}[?25l")
    }

    deinit { end() }

    /// Gives the terminal back, once. From any thread.
    func end() {
        guard !isEnded.exchange(true, ordering: .relaxed) else { return }
        Terminal.writeResult("\u{1B}[?25h\u{1B}[?1049l")
        Terminal.apply(shown)
    }

    /// Shows lines, in place of those that were there.
    func show(_ lines: [String]) {
        // Each line ends what was longer there, and the last one what was below.
        Terminal.writeResult("\u{1B}[H" + lines.joined(separator: "\u{1B}[K\r\n") + "\u{1B}[K\u{1B}[J")
    }

    /// Waits for a key.
    ///
    /// - Returns: Nil if none came within `milliseconds`; 0 at the end of the input.
    func key(within milliseconds: Int32) -> UInt8? {
        var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&input, 1, milliseconds) > 0 else { return nil }
        var byte: UInt8 = 0
        return unsafe read(STDIN_FILENO, &byte, 1) == 1 ? byte : 0
    }
}

/// Colours and weights, where the reader is a terminal that knows them.
///
/// `NO_COLOR` in the environment, or a `TERM` of `dumb`, turns them off (no-color.org).
struct TerminalStyle: Sendable {
    let isEnabled: Bool

    /// The style of standard output.
    static var standardOutput: TerminalStyle { detect(STDOUT_FILENO) }
    /// The style of standard error.
    static var standardError: TerminalStyle { detect(STDERR_FILENO) }

    func bold(_ text: String) -> String { wrap(text, "1") }
    func dim(_ text: String) -> String { wrap(text, "2") }
    func red(_ text: String) -> String { wrap(text, "31") }
    func green(_ text: String) -> String { wrap(text, "32") }
    func yellow(_ text: String) -> String { wrap(text, "33") }
    func blue(_ text: String) -> String { wrap(text, "34") }

    private func wrap(_ text: String, _ code: String) -> String {
        isEnabled ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    private static func detect(_ descriptor: Int32) -> TerminalStyle {
        func variable(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }
        let hasColour = variable("NO_COLOR").map(\.isEmpty) ?? true
        let term = variable("TERM") ?? "dumb"
        return TerminalStyle(isEnabled: isatty(descriptor) == 1 && hasColour && term != "dumb")
    }
}

/// Lines that say what a command is doing, on standard error, so that standard output has its result alone.
struct ProgressLines {
    private let style = TerminalStyle.standardError

    /// What is being done, or has been.
    func say(_ line: String) { Terminal.printError(style.dim("·") + " " + line) }

    /// Something that did not go as it should.
    func warn(_ line: String) { Terminal.printError(style.yellow("!") + " " + line) }
}
