package import SignalWire

/// An event as one user's devices receive it: the number is that user's, the body is shared by all receivers.
package struct ToldEvent: Hashable, Sendable {
    var sequence: UInt64
    var body: EventBody

    /// What happened, read from its text.
    package var event: ExchangeEvent { body.event ?? .unknown(type: "unknown", data: nil) }
    /// The message, ready to send.
    package var message: [UInt8] { body.text.message(numbered: sequence) }
}
