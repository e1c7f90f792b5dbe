public import AudioDevices
public import AudioKit
public import Call
public import CallControl
public import CallMedia
public import CallParticipation
public import MediaEngine
public import Realtime
public import Voicemail

/// Events of a device for the program that runs it.
public enum DeviceEvent: Sendable {
    /// The connection to the service changed, or the service said something that is not about a call.
    case signaling(SignalingEvent)
    /// A call has the id by which the other end and the service know it: over SIP its Call-ID. It comes before everything else
    /// about a call that comes in, and as soon as the service has taken one that goes out.
    case identified(CallID, InviteID)
    /// An incoming call.
    case incoming(CallID, from: UserID)
    /// An incoming invite that is no call.
    case invited(IncomingInvite)
    /// An event of an invite that is no call.
    case invite(InviteEvent)
    /// The invitee took our call, or we took theirs; it may not be able to carry media yet.
    case answered(CallID)
    /// The call can carry media, since that time after its invite (contract CALL-2). Its duration counts from now on.
    case established(CallID, after: Duration)
    /// Media flows both ways: the peer is heard, and has reported that it hears us or sends no reports. A fact that nothing
    /// waits for: it never comes with a peer that sends no sound. Both times count from the invite.
    case flowing(CallID, after: Duration, establishedAfter: Duration)
    /// The file that the call plays has ended; a short one possibly before ``flowing(_:after:establishedAfter:)``.
    case playbackEnded(CallID)
    /// A file is played in place of the call's source.
    case playing(CallID, path: String)
    /// That file has ended, and the source is heard again.
    case playingEnded(CallID, path: String, AnnouncementEnd)
    /// The call is being recorded.
    case recording(CallID, path: String)
    /// A recording has ended; if the call has ended, reported before ``ended(_:_:_:)``, unless the disk takes longer than two seconds.
    case recordingEnded(CallID, RecordingEnd, RecordingEndReason)
    /// The room that the call is in is being recorded (``Device/recordRoom(of:to:)``).
    case roomRecording(CallID, room: String, path: String)
    /// The recording of a room that the call was in when it began has ended. The call may have ended before.
    case roomRecordingEnded(CallID, room: String, RecordingEnd)
    /// A program or bot takes part in an established call.
    case attached(CallID)
    /// The program or bot has left the call, which continues.
    case detached(CallID)
    /// The peer has pressed a telephone key: `0`…`9`, `*`, `#`, `A`…`D`, or `!` for the flash of the hook.
    case digit(CallID, Character, heldFor: Duration)
    /// In a call with a program, the caller has begun to speak, or has spoken until then; from the beginning of the call's sound.
    case speech(CallID, isOver: Bool, at: Duration)
    /// The caller's speech has stopped the call's program, after it had played for `played`.
    case interrupted(CallID, played: Duration)
    /// The time from the end of the caller's speech to the first sound of the program's answer that was sent.
    case responded(CallID, after: Duration)
    /// A caller has left a message, whose sound is the file of this path. The call may have ended before; nil: an earlier process has left
    /// the message unfinished.
    case voicemail(CallID?, VoicemailMessage, path: String)
    /// The peer asks us to call another user in its place, and whether we do (contract CALL-8).
    case transferRequested(CallID, to: UserID, isAccepted: Bool)
    /// The progress of a transfer that we requested of the peer, or that we carry out at its request.
    case transferProgress(CallID, to: UserID, CallTransfer.Progress)
    /// A step of the hand-over of a call to a person.
    case handover(CallID, HandoverReport)
    /// The call was parked in this slot, or is no longer: `parked`, `picked_up`, `back`, `expired` or `gone`.
    case parking(CallID, slot: Int, state: String)
    /// The call waits in a queue, at this place from 1.
    case queued(CallID, queue: String, position: Int)
    /// The call has left its queue: `bridged`, `hangup` and the other results of TwiML.
    case leftQueue(CallID, queue: String, result: String, waited: Duration)
    /// The call stopped sending, because sending has become useless or harmful (RFC 8083); receiving continues.
    case sendingStopped(CallID, SendingStop)
    /// The call sends again.
    case sendingResumed(CallID)
    /// A file that the call plays or records has failed; the call continues without it.
    case fileFailed(CallID, AudioFileError)
    /// The call and its media, if there was any, have ended.
    case ended(CallID, CallRecord, MediaReport?)
    /// An event of the sound card. Calls continue without the card, and use it again when it is back.
    case card(CardEvent)
    /// The device spends less effort on encoding than configured, or refuses calls, because its machine is busy; or it no
    /// longer does.
    case loadChanged(DeviceLoad)
    /// The media threads run without real-time priority.
    case realtimePriorityRefused(RealtimeError)
}

extension DeviceEvent {
    /// The call that it is about; nil if it is about none.
    public var call: CallID? {
        switch self {
        case .identified(let call, _), .incoming(let call, _), .answered(let call), .established(let call, _),
            .flowing(let call, _, _), .playbackEnded(let call), .playing(let call, _), .playingEnded(let call, _, _),
            .recording(let call, _),
            .recordingEnded(let call, _, _), .roomRecording(let call, _, _), .roomRecordingEnded(let call, _, _),
            .attached(let call), .detached(let call), .digit(let call, _, _),
            .speech(let call, _, _), .interrupted(let call, _), .responded(let call, _),
            .transferRequested(let call, _, _), .transferProgress(let call, _, _), .sendingStopped(let call, _),
            .handover(let call, _), .parking(let call, _, _), .queued(let call, _, _),
            .leftQueue(let call, _, _, _), .sendingResumed(let call), .fileFailed(let call, _),
            .ended(let call, _, _):
            call
        case .voicemail(let call, _, _): call
        case .signaling, .invited, .invite, .card, .loadChanged, .realtimePriorityRefused: nil
        }
    }
}

extension DeviceEvent {
    init(_ event: CallEvent, of call: CallID) {
        self =
            switch event {
            case .identified(let invite): .identified(call, invite)
            case .incoming(let caller): .incoming(call, from: caller)
            case .answered: .answered(call)
            case .established(let time): .established(call, after: time)
            case .flowing(let time, let established): .flowing(call, after: time, establishedAfter: established)
            case .playbackEnded: .playbackEnded(call)
            case .recording(let path): .recording(call, path: path)
            case .attached: .attached(call)
            case .detached: .detached(call)
            case .digit(let key, let time): .digit(call, key, heldFor: time)
            case .speech(let isOver, let time): .speech(call, isOver: isOver, at: time)
            case .interrupted(let played): .interrupted(call, played: played)
            case .responded(let time): .responded(call, after: time)
            case .transferRequested(let target, let isAccepted):
                .transferRequested(call, to: target, isAccepted: isAccepted)
            case .transferProgress(let target, let progress): .transferProgress(call, to: target, progress)
            }
    }
}

extension DeviceEvent {
    /// What programs learn of an event of a call's media, besides what the call's session reports; nil if nothing.
    init?(_ event: MediaEvent, of call: CallID) {
        switch event {
        case .announcementEnded(_, let path, let end): self = .playingEnded(call, path: path, end)
        case .sendingStopped(_, let reason): self = .sendingStopped(call, reason)
        case .sendingResumed: self = .sendingResumed(call)
        case .fileFailed(_, let error): self = .fileFailed(call, error)
        case .mediaReceived, .ready, .flowing, .playbackEnded, .bridgeHeard, .recordingEnded, .digit, .candidate,
            .candidatesComplete, .connected, .secured, .connectionQuiet, .connectionBack, .pathLost, .relayFailed,
            .relayOverrun,
            .connectionFailed, .goodbyeReceived, .refused, .ended, .card, .effortLimited, .loadMeasured,
            .realtimePriorityRefused:
            return nil
        }
    }
}
