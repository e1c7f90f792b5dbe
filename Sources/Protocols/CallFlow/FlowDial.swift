public import BotWire

/// How a caller is connected with others.
public struct FlowDial: Equatable, Sendable {
    /// The callees or the room.
    public enum Destination: Equatable, Sendable {
        /// Callees that ring at once; the first that answers gets the caller. With a document, each callee that answers goes through that
        /// first, and accepts by reaching its end.
        case callees([FlowText], asking: FlowText?)
        /// A room in which calls meet.
        case room(FlowText, mostMembers: Int, hasTones: Bool)
        /// The caller of a queue that has waited longest. With a document, that caller goes through it first.
        case queue(FlowText, whisper: FlowText?, Webhook.Method)
    }

    /// Callees of one Dial.
    public static let mostCallees = 10
    /// How long callees ring at most if the caller is answered only with the callee: the caller's own call rings no longer.
    public static let longestUnanswered = 25

    /// The callees, the room or the queue.
    public let destination: Destination
    /// How long callees ring, or a caller of the queue is waited for.
    public let timeout: Duration
    /// How long the caller is connected at most; nil for no limit of its own.
    public let timeLimit: Duration?
    /// The document that follows; the next verb if nil.
    public let action: FlowText?
    /// How a server is asked for it.
    public let method: Webhook.Method
    /// Whether the caller ends the connection with `*`.
    public let hangsUpOnStar: Bool
    /// Whether the caller is answered only when a callee has answered, and hears its own call ring until then.
    public let answersOnBridge: Bool

    /// Whether the caller hears the ringing tone until it is connected.
    var rings: Bool {
        switch destination {
        case .callees, .queue: true
        case .room: false
        }
    }
}

/// What a flow orders of its device to connect a caller, with the values of the call.
public struct FlowDialOrder: Equatable, Sendable {
    /// The callees or the room.
    public enum Destination: Equatable, Sendable {
        /// Callees by names that nothing has judged yet, and the document that they go through.
        case callees([String], asking: FlowAddress?)
        /// A room.
        case room(String, mostMembers: Int, hasTones: Bool)
        /// The caller of this queue that has waited longest, and the document that it goes through.
        case queue(String, whisper: FlowWhisper?)
    }

    /// The callees or the room.
    public let destination: Destination
    /// How long callees ring.
    public let timeout: Duration

    /// Makes an order.
    public init(_ destination: Destination, timeout: Duration) {
        self.destination = destination
        self.timeout = timeout
    }
}

/// How a dialled call has ended. The names are those of `{{DialCallStatus}}`.
public enum DialStatus: String, CaseIterable, Equatable, Sendable {
    /// A callee was connected with the caller.
    case completed
    /// The callee is busy, or has declined.
    case busy
    /// No callee has answered in time, or accepted.
    case noAnswer = "no-answer"
    /// No callee could be called, or it was lost before the caller was connected with it.
    case failed
    /// The caller gave up while it rang.
    case canceled
}
