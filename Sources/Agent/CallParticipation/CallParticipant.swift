// CallParticipation: one protocol for what takes part in calls in place of a person, and this process as such a participant.

public import AudioPort
public import CallControl
public import Tracing

/// Names one call of a device; never used again for another.
public struct CallID: Hashable, Sendable, CustomStringConvertible {
    /// Counts from 1.
    public let number: UInt64

    /// The call of this number.
    public init(number: UInt64) { self.number = number }

    /// "call 7".
    public var description: String { "call \(number)" }
}

/// Takes part in calls of a device in place of a person: a program, a bot, or this process.
///
/// One object serves all calls of a device that have this kind of participant. Methods return at once and may be called from any
/// thread. A call has one participant at a time. What spans calls, such as a conference, is no participant: it has an owner of its own
/// beside the calls.
public protocol CallParticipant: Sendable {
    /// What the participant is, for logs and figures.
    var kind: ParticipantKind { get }

    /// Whether an incoming call is accepted only after ``ParticipantEvent/ready(_:)``; then ``begin(_:)`` comes before media is prepared.
    var delaysAnswer: Bool { get }

    /// Whether the keys that it hears may be secrets, such as PINs: then neither events nor logs have them.
    var keepsKeys: Bool { get }

    /// Begins to take part in a call. If the call is not answered yet and the participant delays that,
    /// ``ParticipantEvent/ready(_:)``, ``ParticipantEvent/rejected(_:_:_:)`` or ``ParticipantEvent/failed(_:_:)`` follows.
    func begin(_ call: ParticipantCall) throws

    /// Returns the media worker's side of the call's sound; nil for silence.
    func attach(to call: CallID) throws -> PortLine?

    /// Delivers a telephone key that the peer has pressed.
    func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID)

    /// Reports the progress of a transfer for which the peer was asked.
    func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of call: CallID)

    /// Reports a step of a hand-over of the call to a person, also of one that others have asked for.
    func noteHandover(_ report: HandoverReport, of call: CallID)

    /// Reports that a request of the participant is refused, with the reason as text.
    func refuse(_ request: ParticipantRequest, of call: CallID, _ why: String)

    /// Plays the sound written so far and accepts no more; ``ParticipantEvent/done(_:failure:)`` follows.
    func hearOut(_ call: CallID)

    /// Ends the participation. ``ParticipantEvent/left(_:)`` follows, also without participation.
    func end(_ call: CallID, _ end: ParticipationEnd)

    /// Ends all participations, and frees what serves them.
    func finish() async
}

extension CallParticipant {
    /// Keys are reported to all who follow the device's events.
    public var keepsKeys: Bool { false }

    /// Reports nothing: most participants have no way to be notified.
    public func noteHandover(_ report: HandoverReport, of call: CallID) {}
}

/// A call as its participant sees it.
public struct ParticipantCall: Sendable, Equatable {
    /// The call.
    public var id: CallID
    /// The remote party.
    public var peer: UserID
    /// The device's user at its service; nil if unknown.
    public var own: UserID?
    /// Who calls from a telephone network, where the remote party is what connects with it; nil for others. Hostile text.
    public var caller: String?
    /// What the caller calls itself, if it does. Hostile text.
    public var callerName: String?
    /// Whether this device called.
    public var isOutgoing: Bool
    /// Whether the call is answered, so that it does not wait for the participant.
    public var isAnswered: Bool
    /// The call's span, for what the participant does elsewhere; nil if calls are not traced.
    public var trace: TraceContext?

    /// Describes a call.
    public init(
        _ id: CallID, peer: UserID, own: UserID? = nil, isOutgoing: Bool, isAnswered: Bool, trace: TraceContext? = nil
    ) {
        self.id = id
        self.peer = peer
        self.own = own
        self.isOutgoing = isOutgoing
        self.isAnswered = isAnswered
        self.trace = trace
    }
}

/// Why a participation ends.
public enum ParticipationEnd: Sendable {
    /// The call has ended.
    case callEnded(CallRecord)
    /// The participant leaves a call that continues.
    case detached
}

/// The kinds of participants.
public enum ParticipantKind: Sendable {
    /// A process that the device starts.
    case program
    /// A voice bot on the network.
    case bot
    /// A flow in TwiML.
    case flow
    /// A room in which calls meet.
    case meeting
    /// A mailbox, in which callers leave messages.
    case mailbox
    /// This process, by ports.
    case port
    /// This process, by lines without a port.
    case line
}
