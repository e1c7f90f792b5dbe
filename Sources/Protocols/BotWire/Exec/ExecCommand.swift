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
        case "hangup": self = .hangUp
        case _?: throw Fault(description: "there is no such command; there are \(Self.names)")
        case nil: throw Fault(description: "\"command\" must be one of \(Self.names)")
        }
    }

    private static let names = "mark, clear, dtmf, transfer and hangup"

    private static func text(_ key: String, of value: JSONValue, maximumBytes: Int) throws(Fault) -> String {
        guard let text = value[key]?.string, (1...maximumBytes).contains(text.utf8.count) else {
            throw Fault(description: "\"\(key)\" must be a text of 1 to \(maximumBytes) bytes")
        }
        return text
    }
}
