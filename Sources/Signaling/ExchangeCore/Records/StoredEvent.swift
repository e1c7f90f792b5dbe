public import SignalWire
public import Core

/// A numbered event as stored for devices that resume.
public struct StoredEvent: Sendable {
    /// The audience of an event among the user's devices.
    public enum Audience: Hashable, Sendable {
        /// One device, registered or not.
        case device(DeviceID)
        /// The devices that receive invites, except one.
        case registered(except: DeviceID?)
        /// All devices, registered or not.
        case every
    }

    /// In whose stream it is.
    public var principal: Principal
    /// Its number.
    public var sequence: UInt64
    /// What happened.
    public var body: EventBody
    /// The devices that receive it.
    public var audience: Audience
    /// When it happened.
    public var at: Instant

    /// Makes an entry.
    public init(principal: Principal, sequence: UInt64, body: EventBody, audience: Audience, at: Instant) {
        self.principal = principal
        self.sequence = sequence
        self.body = body
        self.audience = audience
        self.at = at
    }
}

extension StoredEvent: Hashable {
    /// Compares what happened, whichever copy of it.
    public static func == (left: Self, right: Self) -> Bool {
        left.principal == right.principal && left.sequence == right.sequence && left.audience == right.audience
            && left.at == right.at && left.body.text == right.body.text
    }

    /// Hashes the fields that identify an event.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(principal)
        hasher.combine(sequence)
    }
}

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
