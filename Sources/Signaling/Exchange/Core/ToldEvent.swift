import ExchangeStore
import SignalWire

/// An event as one user's devices are told of it: its number is theirs, its body everybody's.
struct ToldEvent: Hashable, Sendable {
    var sequence: UInt64
    var body: EventBody

    /// What happened, read from its text.
    var event: ExchangeEvent { body.event ?? .unknown(type: "unknown", data: nil) }
    /// The message, ready to send.
    var message: [UInt8] { body.text.message(numbered: sequence) }
}
