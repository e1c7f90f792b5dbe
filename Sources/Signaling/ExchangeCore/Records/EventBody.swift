public import SignalWire

/// What happened, kept once for all who are told of it, in memory and on disk.
public struct EventBody: Hashable, Sendable {
    /// Tells bodies of one run apart.
    public let number: UInt64
    /// What is told.
    public let text: EventText

    /// Names a text.
    public init(number: UInt64, text: EventText) {
        self.number = number
        self.text = text
    }

    /// The event; `nil` for a text that no exchange writes.
    public var event: ExchangeEvent? { text.event }
    /// Bytes of the text.
    public var bytes: Int { text.text.utf8.count }
}
