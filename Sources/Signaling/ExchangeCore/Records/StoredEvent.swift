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
