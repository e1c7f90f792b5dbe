internal import Logging
internal import Core
internal import Realtime

/// Handset's backend of swift-log: writes each event as one line.
struct LineLogHandler: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    private let label: String
    private let format: LogFormat
    private let style: TerminalStyle
    private let now: @Sendable () -> WallClock
    private let limiter: LogLimiter?
    private let write: @Sendable (String) -> Void

    /// - Parameter limiter: Decides which lines are written; nil for all.
    init(
        label: String, level: Logger.Level, format: LogFormat, style: TerminalStyle, limiter: LogLimiter? = nil,
        now: @escaping @Sendable () -> WallClock = { MonotonicClock.wallTime },
        write: @escaping @Sendable (String) -> Void
    ) {
        self.label = label
        logLevel = level
        self.format = format
        self.style = style
        self.limiter = limiter
        self.now = now
        self.write = write
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let message = event.message.description
        if let limiter, !limiter.admits(message, event.level, label: label) { return }
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { _, new in new } }
        if let given = event.metadata { all.merge(given) { _, new in new } }
        if let error = event.error { all["error"] = "\(error)" }
        let line = LogLine(
            time: now(), level: event.level, label: label, message: message, metadata: all)
        write(format.render(line, style: style))
    }
}
