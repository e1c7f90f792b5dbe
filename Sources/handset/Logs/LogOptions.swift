internal import ArgumentParser
internal import Logging
internal import Synchronization

/// The options of every command that logs.
struct LogOptions: ParsableArguments {
    @Option(help: "How the log is written: human or json.")
    var logFormat: LogFormat = .human

    @Option(
        help: "The least of what is logged: \(levelNames).", completion: Completions.logLevels, transform: Self.level)
    var logLevel: Logger.Level = .info

    /// Sends all logging of this process to standard error. Called once, before the first logger is made.
    func bootstrap() {
        let format = logFormat
        let level = logLevel
        let style = TerminalStyle.standardError
        let limiter = LogLimiter { withheld in
            Terminal.printError(format.render(LogLine(withheld, at: SystemTime.now()), style: style))
        }
        Self.limiter.withLock { $0 = limiter }
        LoggingSystem.bootstrap { label in
            LineLogHandler(label: label, level: level, format: format, style: style, limiter: limiter) {
                Terminal.printError($0)
            }
        }
    }

    private static let limiter = Mutex<LogLimiter?>(nil)

    /// Reports what was withheld and not reported yet, at the end of the process.
    static func finish() { limiter.withLock { $0 }?.finish() }

    private static let levelNames = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")

    private static func level(_ name: String) throws -> Logger.Level {
        guard let level = Logger.Level(rawValue: name) else {
            throw ValidationError("'\(name)' is no level; one of \(levelNames)")
        }
        return level
    }
}
