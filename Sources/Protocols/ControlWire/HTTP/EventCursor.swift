internal import Core
internal import JSON

/// A position in the history of a device's events: `HISTORY-POSITION`.
public struct EventCursor: Hashable, Sendable, CustomStringConvertible {
    /// The history's id, so that a cursor of another device, or of events that were lost with their process, is recognised.
    public let history: UInt64
    /// The last event that was received; 0 before the first.
    public let position: UInt64

    /// Names a position.
    public init(history: UInt64, position: UInt64) {
        self.history = history
        self.position = position
    }

    /// Reads a cursor; nil for anything else.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 16, let history = UInt64(parts[0], radix: 16),
            let position = Digits.number(parts[1], upTo: UInt64.max)
        else { return nil }
        self.init(history: history, position: position)
    }

    /// The run of the device that the position is of, as text. The number of a call is of one run.
    var run: String { "\(Hexadecimal.text(of: history))-\(position >> EventArchive.runShift)" }

    /// The cursor as text.
    public var description: String { "\(Hexadecimal.text(of: history))-\(position)" }
}

/// Which events a client wants.
public struct EventSubscription: Hashable, Sendable {
    /// Where its events begin.
    public enum Start: Hashable, Sendable {
        case now
        case oldest
        case after(EventCursor)
    }

    /// Where its events begin.
    public let start: Start
    /// Whether it wants levels.
    public let wantsLevels: Bool
    /// The account whose events it wants, with those of the process; nil for all.
    public let account: String?

    /// Describes what a client wants.
    public init(start: Start, wantsLevels: Bool = false, account: String? = nil) {
        self.start = start
        self.wantsLevels = wantsLevels
        self.account = account
    }

    init(_ query: [String: JSONValue], lastEventID: String?) throws(ControlProblem) {
        wantsLevels = query["levels"] == true
        account = query["account"]?.string
        // A browser or library that connects again repeats the URL, and adds the field.
        guard let text = lastEventID ?? query["after"]?.string else {
            start = .now
            return
        }
        if text == "oldest" {
            start = .oldest
        } else if let cursor = EventCursor(text) {
            start = .after(cursor)
        } else {
            throw ControlProblem(
                .wrongValue,
                "\(RequestFields.quoted(text)) is no cursor; take the id of an event, the cursor of GET /v1/status, or oldest"
            )
        }
    }
}
