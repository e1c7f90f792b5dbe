// BotWire: how programs and voice bots take part in calls: the lines of a program, the messages of telephone services, and the
// requests around them. Pure: it knows no process, socket or call.

internal import FoundationEssentials
internal import JSON

/// An event sent to a program of the behaviour `exec`: one JSON object on each line (docs/bots.md).
///
/// Lengths are samples at the program's rate.
public enum ExecEvent: Equatable, Sendable {
    /// The first line.
    case begin(Begin)
    /// The caller has pressed a telephone key.
    case digit(Character, heldMilliseconds: Int)
    /// All sound before the mark has been sent to the caller.
    case mark(String, played: Int)
    /// The sound before the mark was discarded.
    case markDiscarded(String)
    /// Sound that was not played yet is discarded.
    case cleared(played: Int)
    /// The caller began to speak, or stopped, at this sample of the caller's sound.
    case speech(isOver: Bool, at: Int)
    /// The caller interrupted the program: the rest of what it wrote is discarded. `played` samples were played at full
    /// level.
    case interrupted(played: Int)
    /// The state of a transfer that the program, or the device's operator, asked the caller for.
    case transfer(to: String, state: String)
    /// A step of the hand-over of the call to a person; with the reason if it has ended.
    case handover(to: String, state: String, reason: String?)
    /// A request of the program failed, and why.
    case error(String)
    /// The call ended. The last line.
    case end(reason: String)

    /// Identifies the call, and describes its sound.
    public struct Begin: Equatable, Sendable {
        /// The device's number of the call.
        public var call: UInt64
        /// The remote party.
        public var peer: String
        /// Whether this side called.
        public var isOutgoing: Bool
        /// Samples a second.
        public var rateHz: Int
        /// `linear`, `mulaw` or `alaw`.
        public var encoding: String
        /// How often the program was started again in this call.
        public var restarts: Int

        /// Makes one.
        public init(call: UInt64, peer: String, isOutgoing: Bool, rateHz: Int, encoding: String, restarts: Int) {
            self.call = call
            self.peer = peer
            self.isOutgoing = isOutgoing
            self.rateHz = rateHz
            self.encoding = encoding
            self.restarts = restarts
        }
    }

    /// The event as a line, with its line break.
    public var line: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Texts and whole numbers, which cannot fail.
        let data = (try? encoder.encode(JSONValue.object(members))) ?? Data()
        return [UInt8](data) + [UInt8(ascii: "\n")]
    }

    private var members: [String: JSONValue] {
        switch self {
        case .begin(let begin):
            [
                "event": "begin", "call": .unsigned(begin.call), "peer": .string(begin.peer),
                "direction": begin.isOutgoing ? "outgoing" : "incoming", "rate_hz": .integer(Int64(begin.rateHz)),
                "encoding": .string(begin.encoding), "restarts": .integer(Int64(begin.restarts)),
            ]
        case .digit(let key, let milliseconds):
            ["event": "digit", "key": .string(String(key)), "held_ms": .integer(Int64(milliseconds))]
        case .mark(let name, let played):
            ["event": "mark", "name": .string(name), "cleared": false, "played": .integer(Int64(played))]
        case .markDiscarded(let name): ["event": "mark", "name": .string(name), "cleared": true]
        case .cleared(let played): ["event": "cleared", "played": .integer(Int64(played))]
        case .speech(let isOver, let at):
            ["event": "speech", "state": isOver ? "end" : "begin", "at": .integer(Int64(at))]
        case .interrupted(let played): ["event": "interrupted", "played": .integer(Int64(played))]
        case .transfer(let target, let state):
            ["event": "transfer", "to": .string(target), "state": .string(state)]
        case .handover(let target, let state, nil):
            ["event": "handover", "to": .string(target), "state": .string(state)]
        case .handover(let target, let state, let reason?):
            ["event": "handover", "to": .string(target), "state": .string(state), "reason": .string(reason)]
        case .error(let text): ["event": "error", "message": .string(text)]
        case .end(let reason): ["event": "end", "reason": .string(reason)]
        }
    }
}
