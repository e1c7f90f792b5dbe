/// What waits in a mailbox, as the body of a NOTIFY says it (RFC 3842 §5.2). Only voice messages are counted.
public struct MessageSummary: Hashable, Sendable {
    /// Whether a message waits that was not heard.
    public var isWaiting: Bool
    /// The account whose mailbox it is, a URI; nil if the text names none.
    public var account: String?
    /// Messages that were not heard.
    public var new: Int
    /// Messages that were heard.
    public var old: Int

    /// Counts the messages of an account.
    public init(new: Int, old: Int, account: String? = nil) {
        isWaiting = new > 0
        self.account = account
        self.new = new
        self.old = old
    }

    /// The event package (RFC 3842 §3.1).
    public static let event = "message-summary"
    /// Bytes of a body that is read.
    static let mostBytes = 4_096
    /// More messages than any mailbox has; a larger count is read as this.
    private static let mostMessages = 1_000_000

    /// The body.
    public var body: [UInt8] {
        var text = "Messages-Waiting: \(isWaiting ? "yes" : "no")\r\n"
        if let account { text += "Message-Account: \(account)\r\n" }
        text += "Voice-Message: \(new)/\(old)\r\n"
        return Array(text.utf8)
    }

    /// Reads a body. Counts of other kinds of message, urgent ones and headers of messages are ignored.
    ///
    /// - Returns: Nil if it does not say whether messages wait, if a line is none, or if it has more than 4 KiB.
    public init?(parsing bytes: [UInt8]) {
        guard bytes.count <= Self.mostBytes else { return nil }
        var isWaiting: Bool?
        var (account, counts): (String?, (Int, Int)?) = (nil, nil)
        for var line in bytes.split(separator: 10, omittingEmptySubsequences: false) {
            if line.last == 13 { line = line.dropLast() }
            // Behind an empty line come headers of the messages.
            if line.isEmpty { break }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let name = TextScanner.trimmed(line[..<colon]).lowercased()
            let value = TextScanner.trimmed(line[(colon + 1)...])
            // It comes first.
            guard isWaiting != nil || name == "messages-waiting" else { return nil }
            switch name {
            case "messages-waiting":
                guard isWaiting == nil, let word = ["yes": true, "no": false][value.lowercased()] else { return nil }
                isWaiting = word
            case "message-account": account = value
            case "voice-message":
                guard counts == nil, let read = Self.counts(value) else { return nil }
                counts = read
            default: continue
            }
        }
        guard let isWaiting else { return nil }
        self.isWaiting = isWaiting
        self.account = account
        (new, old) = counts ?? (0, 0)
    }

    /// `new/old`, which may have urgent ones in parentheses behind it.
    private static func counts(_ text: String) -> (Int, Int)? {
        var scanner = TextScanner(text)
        guard let new = scanner.number(), scanner.separator(UInt8(ascii: "/")), let old = scanner.number() else {
            return nil
        }
        scanner.skipSpace()
        guard scanner.isAtEnd || scanner.peek == UInt8(ascii: "(") else { return nil }
        return (min(Int(new), mostMessages), min(Int(old), mostMessages))
    }
}
