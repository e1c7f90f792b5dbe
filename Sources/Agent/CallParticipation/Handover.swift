/// A request to hand a call over from what takes part in it to a person.
public struct HandoverRequest: Sendable, Equatable {
    /// What the person hears before it is joined to the caller.
    public enum Whisper: Sendable, Equatable {
        /// A text, spoken by the command `handover.say`.
        case text(String)
        /// The path of a WAV or Ogg Opus file.
        case file(String)
    }

    /// What the caller hears until it is joined.
    public enum Music: Sendable, Equatable {
        /// The file `handover.music`; as before without one.
        case configured
        /// As before: the participant, or the call's source.
        case participant
        /// The WAV or Ogg Opus file of this path, again and again.
        case file(String)
    }

    /// What the participant does once caller and person are joined.
    public enum Role: String, CaseIterable, Sendable {
        /// It leaves the call, which ends with either side.
        case leaves
        /// It continues to hear the caller, what it says waits, and the caller is back with it when the person hangs up.
        case listens
    }

    /// Bytes of a whisper's text.
    public static let whisperBytes = 1_000
    /// Seconds for which a person may ring.
    public static let ringingSeconds: ClosedRange<Int64> = 5...180
    /// The keys with which a person can accept.
    public static let acceptKeys = "0123456789*#ABCD"

    /// The person: a name that nothing has judged yet.
    public var target: String
    /// What the person hears when it answers; nil for nothing.
    public var whisper: Whisper?
    /// The key with which the person accepts; nil: it is joined when the whisper has ended.
    public var acceptKey: Character?
    /// What the caller hears meanwhile.
    public var music = Music.configured
    /// How long the person rings.
    public var ringing = Duration.seconds(30)
    /// What becomes of the participant.
    public var role = Role.leaves

    /// Asks for a person.
    public init(to target: String) { self.target = target }
}

/// How far a hand-over is. The names are those of events.
public enum HandoverState: String, CaseIterable, Sendable {
    /// The hand-over was asked for, and is allowed.
    case asked
    /// The person is being called.
    case ringing
    /// The person has answered, and hears the whisper, or is waited for to accept.
    case whispering
    /// The person accepts.
    case accepted
    /// Caller and person hear each other.
    case joined
    /// The person has declined, or has hung up before it accepted.
    case refused
    /// The person is busy.
    case busy
    /// The person did not answer in time, or did not accept.
    case noAnswer = "no_answer"
    /// The caller has hung up.
    case gone
    /// The person could not be called, or the connection was lost.
    case failed
    /// The hand-over was taken back.
    case cancelled
    /// Caller and person are no longer joined.
    case ended

    /// Whether nothing follows.
    public var isFinal: Bool {
        switch self {
        case .asked, .ringing, .whispering, .accepted, .joined: false
        case .refused, .busy, .noAnswer, .gone, .failed, .cancelled, .ended: true
        }
    }

    /// Whether the hand-over has ended, and the caller is back with what takes part in its call.
    public var returnsCaller: Bool { isFinal && self != .gone }
}

/// A step of a hand-over.
public struct HandoverReport: Sendable, Equatable {
    /// The person.
    public let target: String
    /// How far it is.
    public let state: HandoverState
    /// The call with the person; nil before there is one.
    public let call: CallID?
    /// Why it has ended, in words; nil before that.
    public let reason: String?

    /// Reports a step.
    public init(to target: String, _ state: HandoverState, by call: CallID? = nil, because reason: String? = nil) {
        self.target = target
        self.state = state
        self.call = call
        self.reason = reason
    }
}
