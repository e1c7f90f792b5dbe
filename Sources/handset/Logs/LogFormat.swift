internal import ArgumentParser
internal import Logging
internal import Core

/// How a line of the log is written.
enum LogFormat: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// For people: time, level, logger, message, then the metadata as `key=value`.
    case human
    /// For programs: one JSON object for each line.
    case json
}

/// One line of the log before it is written.
struct LogLine {
    var time: WallClock
    var level: Logger.Level
    var label: String
    var message: String
    var metadata: Logger.Metadata
}

extension LogFormat {
    /// The text of `line`, without a line break at its end and without one within it.
    func render(_ line: LogLine, style: TerminalStyle) -> String {
        switch self {
        case .human: human(line, style)
        case .json: json(line)
        }
    }

    private func human(_ line: LogLine, _ style: TerminalStyle) -> String {
        let level = line.level.rawValue
        let padded = level + String(repeating: " ", count: max(0, 8 - level.utf8.count))
        var text = style.dim(line.time.rfc3339) + " "
        text += Self.coloured(padded, line.level, style) + " "
        text += style.dim("[\(Self.escaped(line.label))]") + " "
        text += Self.escaped(line.message)
        for (key, value) in line.metadata.sorted(by: { $0.key < $1.key }) {
            text += " " + style.dim("\(Self.escaped(key))=") + Self.quotedIfNeeded(value.description)
        }
        return text
    }

    private static func coloured(_ text: String, _ level: Logger.Level, _ style: TerminalStyle) -> String {
        switch level {
        case .trace, .debug: style.dim(text)
        case .info: style.green(text)
        case .notice: style.blue(text)
        case .warning: style.yellow(text)
        case .error, .critical: style.red(text)
        }
    }

    private static func quotedIfNeeded(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0 != "\"" && $0 != "=" }
        return isPlain ? escaped(text) : JSONText.quoted(text)
    }

    /// What a peer sent may be in a message; it must not move the cursor or begin a line of its own.
    private static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: JSONText.isControl) else { return text }
        return String(JSONText.quoted(text).dropFirst().dropLast())
    }

    private func json(_ line: LogLine) -> String {
        var text = "{\"time\":\"\(line.time.rfc3339)\",\"level\":\"\(line.level.rawValue)\""
        text += ",\"logger\":" + JSONText.quoted(line.label)
        text += ",\"message\":" + JSONText.quoted(line.message)
        if !line.metadata.isEmpty { text += ",\"metadata\":" + JSONText.object(line.metadata) }
        return text + "}"
    }
}
