internal import ArgumentParser
internal import Logging
internal import Synchronization
internal import Realtime

/// The options of every command that logs.
struct LogOptions: ParsableArguments {
    @Option(help: "How the log is written: human or json.")
    var logFormat: LogFormat = .human

    @Option(
        help: "The lowest level that is logged: \(levelNames).", completion: Completions.logLevels,
        transform: Self.level)
    var logLevel: Logger.Level = .info

    /// Sends all logging of this process to standard error. Called once, before the first logger is made.
    func bootstrap() {
        let format = logFormat
        let level = logLevel
        let style = TerminalStyle.standardError
        // Without a thread for it, which a machine without memory may refuse, each line is written where it is logged.
        let writer = try? LogWriter(
            lossLine: { format.render(LogLine(lost: $0, at: MonotonicClock.wallTime), style: style) },
            output: { Terminal.printError($0) })
        let write: @Sendable (String) -> Void = { line in
            if let writer { writer.write(line) } else { Terminal.printError(line) }
        }
        let limiter = LogLimiter { withheld in
            write(format.render(LogLine(withheld, at: MonotonicClock.wallTime), style: style))
        }
        Self.log.withLock { $0 = (limiter, writer) }
        LoggingSystem.bootstrap { label in
            LineLogHandler(label: label, level: level, format: format, style: style, limiter: limiter, write: write)
        }
    }

    private static let log = Mutex<(limiter: LogLimiter, writer: LogWriter?)?>(nil)

    /// Writes what is not written yet, reports what was withheld, and says one more line, at the end of the process. A log that takes
    /// nothing delays the end by this time.
    static func finish(saying line: String? = nil, withinMilliseconds milliseconds: Int32 = 1_000) {
        let log = log.withLock { $0 }
        log?.limiter.finish()
        if let writer = log?.writer {
            writer.finish(saying: line, withinMilliseconds: milliseconds)
        } else if let line {
            Terminal.printError(line)
        }
    }

    private static let levelNames = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")

    private static func level(_ name: String) throws -> Logger.Level {
        guard let level = Logger.Level(rawValue: name) else {
            throw ValidationError("'\(name)' is not a level; one of \(levelNames)")
        }
        return level
    }
}
