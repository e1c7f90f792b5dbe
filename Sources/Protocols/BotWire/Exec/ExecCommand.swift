internal import FoundationEssentials
internal import JSON

/// A command of a program of the behaviour `exec`: one JSON object on each line (docs/bots.md).
public enum ExecCommand: Hashable, Sendable {
    /// Report when all sound written so far has been sent to the caller.
    case mark(String)
    /// Discard sound that was written and not yet played.
    case clear
    /// Press telephone keys.
    case press(String)
    /// Ask the caller to call another party instead of this device.
    case transfer(to: String)
    /// Hand the call over to a person.
    case handover(ExecHandover)
    /// Take back a hand-over that is under way.
    case cancelHandover
    /// End the call once all that was written has been played.
    case hangUp

    /// Bytes in one line, without its line break.
    public static let lineBytes = 4_096
    /// Bytes in the name of a mark.
    public static let nameBytes = 256
    /// Bytes in the target of a transfer.
    public static let targetBytes = 256
    /// Telephone keys in one command.
    public static let mostKeys = 32

    /// A line that is not a command. The message is for the program's author.
    public struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        /// The message. It does not repeat the line.
        public let description: String

        /// The line has more than ``ExecCommand/lineBytes``.
        public static let tooLong = Fault(description: "a command has \(lineBytes) bytes on its line at most")
    }

    /// Reads a line without its line break: any bytes of at most ``lineBytes``.
    public init(line: [UInt8]) throws(Fault) {
        guard line.count <= Self.lineBytes else { throw Fault.tooLong }
        guard JSONValue.nesting(of: line) <= 4, let value = try? JSONDecoder().decode(JSONValue.self, from: Data(line)),
            case .object = value
        else { throw Fault(description: "a command is a JSON object on a line of its own") }
        switch value["command"]?.string {
        case "mark": self = .mark(try Self.text("name", of: value, maximumBytes: Self.nameBytes))
        case "clear": self = .clear
        case "dtmf": self = .press(try Self.text("keys", of: value, maximumBytes: Self.mostKeys))
        case "transfer": self = .transfer(to: try Self.text("to", of: value, maximumBytes: Self.targetBytes))
        case "handover": self = .handover(try ExecHandover(value))
        case "handover_cancel": self = .cancelHandover
        case "hangup": self = .hangUp
        case _?: throw Fault(description: "there is no such command; there are \(Self.names)")
        case nil: throw Fault(description: "\"command\" must be one of \(Self.names)")
        }
    }

    private static let names = "mark, clear, dtmf, transfer, handover, handover_cancel and hangup"

    fileprivate static func text(_ key: String, of value: JSONValue, maximumBytes: Int) throws(Fault) -> String {
        guard let text = value[key]?.string, (1...maximumBytes).contains(text.utf8.count) else {
            throw Fault(description: "\"\(key)\" must be a text of 1 to \(maximumBytes) bytes")
        }
        return text
    }
}

/// A program's request to hand its call over to a person.
public struct ExecHandover: Hashable, Sendable {
    /// The person.
    public let target: String
    /// The text that the person hears; nil for none.
    public let whisper: String?
    /// The path of the file that the person hears; nil for none.
    public let whisperFile: String?
    /// The key with which the person accepts; nil: it is joined when the whisper has ended.
    public let acceptKey: Character?
    /// The path of the file that the caller hears meanwhile, or ``ownSound``; nil for the configured one.
    public let music: String?
    /// How long the person rings.
    public let ringSeconds: Int64?
    /// Whether the program continues to hear the caller once it is joined; otherwise it leaves.
    public let listens: Bool

    /// In the place of a file: the caller hears the program.
    public static let ownSound = "bot"
    /// Bytes of a whisper's text, and of a path.
    public static let textBytes = 1_000

    init(_ value: JSONValue) throws(ExecCommand.Fault) {
        target = try ExecCommand.text("to", of: value, maximumBytes: ExecCommand.targetBytes)
        whisper = try Self.optional("whisper", of: value)
        whisperFile = try Self.path("whisper_file", of: value)
        guard whisper == nil || whisperFile == nil else {
            throw ExecCommand.Fault(description: "a hand-over takes whisper or whisper_file")
        }
        let key = try Self.optional("accept", of: value)
        guard key.map({ $0.count == 1 && "0123456789*#ABCD".contains($0) }) ?? true else {
            throw ExecCommand.Fault(description: "\"accept\" must be one key of 0-9, *, # and A-D")
        }
        acceptKey = key?.first
        let music = try Self.optional("music", of: value)
        self.music = music == Self.ownSound ? music : try Self.path("music", of: value)
        ringSeconds = value["ring_seconds"]?.integer
        guard ringSeconds.map({ (5...180).contains($0) }) ?? (value["ring_seconds"] == nil) else {
            throw ExecCommand.Fault(description: "\"ring_seconds\" must be a whole number from 5 to 180")
        }
        let role = try Self.optional("bot", of: value) ?? "leaves"
        guard ["leaves", "listens"].contains(role) else {
            throw ExecCommand.Fault(description: "\"bot\" must be leaves or listens")
        }
        listens = role == "listens"
    }

    private static func optional(_ key: String, of value: JSONValue) throws(ExecCommand.Fault) -> String? {
        guard let member = value[key], member != .null else { return nil }
        return try ExecCommand.text(key, of: value, maximumBytes: textBytes)
    }

    private static func path(_ key: String, of value: JSONValue) throws(ExecCommand.Fault) -> String? {
        guard let path = try optional(key, of: value) else { return nil }
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw ExecCommand.Fault(description: "\"\(key)\" must be a path from the root")
        }
        return path
    }
}
