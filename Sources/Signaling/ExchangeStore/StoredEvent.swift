public import SignalWire
public import Timekeeping

/// A numbered event as it is kept for devices that resume.
public struct StoredEvent: Sendable {
    /// Which of the user's devices it is for.
    public enum Audience: Hashable, Sendable {
        /// One device, registered or not.
        case device(DeviceID)
        /// The devices that receive invites, but for one.
        case registered(except: DeviceID?)
    }

    /// What happened. Text is read when somebody asks: after a restart few events are ever asked for, and reading all of
    /// them was most of the time that a start under load took.
    public enum Body: Sendable {
        case event(ExchangeEvent)
        case text(String)

        /// The event; `nil` for a text that no exchange writes.
        public var event: ExchangeEvent? {
            switch self {
            case .event(let event): event
            case .text(let text): (try? StoreCoding.value(NumberedEvent.self, text))?.event
            }
        }
    }

    /// In whose stream it is.
    public var principal: Principal
    /// Its number.
    public var sequence: UInt64
    /// What happened.
    public var body: Body
    /// Whom it is for.
    public var audience: Audience
    /// When it happened.
    public var at: Instant

    /// Makes an entry.
    public init(principal: Principal, numbered: NumberedEvent, audience: Audience, at: Instant) {
        self.init(
            principal: principal, sequence: numbered.sequence, body: .event(numbered.event), audience: audience, at: at)
    }

    init(principal: Principal, sequence: UInt64, body: Body, audience: Audience, at: Instant) {
        self.principal = principal
        self.sequence = sequence
        self.body = body
        self.audience = audience
        self.at = at
    }
}

extension StoredEvent: Hashable {
    /// Compares what happened, whether it has been read or not.
    public static func == (left: Self, right: Self) -> Bool {
        left.principal == right.principal && left.sequence == right.sequence && left.audience == right.audience
            && left.at == right.at && left.body.event == right.body.event
    }

    /// Hashes what tells events apart.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(principal)
        hasher.combine(sequence)
    }
}
