public import AudioPort
public import CallControl
public import VoiceActivity
public import Voicemail

/// Events and requests of participants, for their device.
public enum ParticipantEvent: Sendable, Equatable {
    /// The participant is ready: a call that waits for it can be accepted.
    case ready(CallID)
    /// The call that waits is rejected at the participant's request; with a text, that is logged.
    case rejected(CallID, RejectReason, String?)
    /// The call that waits cannot be accepted, for the reason in the text.
    case failed(CallID, String)
    /// A request to press telephone keys.
    case press(CallID, keys: String)
    /// A request that the peer call this user, any text, in the device's place.
    case transfer(CallID, to: String)
    /// A request to hand the call over to a person.
    case handover(CallID, HandoverRequest)
    /// A request to take back a hand-over that is under way.
    case cancelHandover(CallID)
    /// The speaker has changed; with the figures of all turns so far.
    case turn(CallID, TurnNotice, TurnSummary)
    /// The caller is heard by others of its meeting, or was until then: since the call joined it.
    case speech(CallID, isOver: Bool, at: Duration)
    /// The call is to end: the participant has finished, was heard out, or has failed.
    case done(CallID, failure: String?)
    /// The participant has left the call: later events of the call are those of another participant.
    case left(CallID)
    /// A notice for the log; about a call, or about all.
    case noted(ParticipantNotice, CallID?)

    /// The call that it is about; nil if it is about all.
    public var call: CallID? {
        switch self {
        case .ready(let call), .rejected(let call, _, _), .failed(let call, _), .press(let call, _),
            .transfer(let call, _), .handover(let call, _), .cancelHandover(let call),
            .turn(let call, _, _), .speech(let call, _, _), .done(let call, _), .left(let call):
            call
        case .noted(_, let call): call
        }
    }
}

/// Requests of participants that a device may refuse.
public enum ParticipantRequest: Sendable, Equatable {
    /// ``ParticipantEvent/press(_:keys:)``.
    case press
    /// ``ParticipantEvent/transfer(_:to:)``.
    case transfer
    /// ``ParticipantEvent/handover(_:_:)``.
    case handover
    /// ``ParticipantEvent/cancelHandover(_:)``.
    case cancelHandover
}

/// What participants report for the log.
public enum ParticipantNotice: Sendable, Equatable {
    /// The participant has failed, for the reason in the text; the caller hears the fallback, and then the call ends.
    case fellBack(String)
    /// The process has failed; it is restarted if `isRestarted`.
    case processFailed(String, isRestarted: Bool)
    /// A line that a program wrote for the log, and the number of lines before it that were dropped as too many.
    case said(String, leftOut: Int)
    /// A command or message cannot be followed, and the number of such reports before it that were dropped.
    case misunderstood(String, leftOut: Int)
    /// A request was refused.
    case refused(ParticipantRequest, String)
    /// The participant reads the caller's sound, or its events, too slowly; reported once for each process or connection.
    case behind(events: Bool)
    /// A program writes faster than it is read, and the excess is dropped; reported once for each process.
    case flooded(ProgramStream)
    /// This number of bytes of a process that has ended were dropped.
    case dropped(ProgramStream, bytes: Int)
    /// A flow is at a verb: its document, line and element.
    case reached(String)
    /// A flow has recorded the caller, to the file of this path.
    case recorded(String)
    /// A mailbox has a new message, whose sound is the file of this path; without a call, of an earlier process.
    case stored(VoicemailMessage, path: String)
    /// The call takes part in this room, with this number of members.
    case met(room: String, members: Int)
    /// Something that the operator must know, and the number of such reports before it that were dropped.
    case warned(String, leftOut: Int)
}

/// Lines that a program writes.
public enum ProgramStream: Sendable, Equatable {
    /// On standard error.
    case log
    /// On descriptor 3.
    case commands
}
