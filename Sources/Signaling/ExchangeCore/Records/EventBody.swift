public import SignalWire

/// The content of an event, kept once for all its receivers, in memory and on disk.
public struct EventBody: Hashable, Sendable {
    /// Identifies a body within one run.
    public let number: UInt64
    /// The event as JSON text.
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
