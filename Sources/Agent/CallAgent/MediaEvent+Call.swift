internal import Call
internal import CallControl
internal import CallMedia
internal import Core
internal import MediaEngine

extension MediaEvent {
    /// The call or leg that it is about; nil if it is about the engine.
    var call: MediaCallID? {
        switch self {
        case .mediaReceived(let id, _), .ready(let id, _), .flowing(let id, _), .playbackEnded(let id),
            .bridgeHeard(let id), .digit(let id, _, _), .sendingStopped(let id, _), .sendingResumed(let id),
            .candidate(let id, _),
            .candidatesComplete(let id),
            .connected(let id, _), .secured(let id), .connectionQuiet(let id), .connectionBack(let id),
            .pathLost(let id), .relayFailed(let id, _, _), .relayOverrun(let id, _, _, _),
            .connectionFailed(let id, _), .goodbyeReceived(let id), .fileFailed(let id, _), .refused(let id),
            .announcementEnded(let id, _, _), .recordingEnded(let id, _), .ended(let id, _):
            id
        case .card, .effortLimited, .loadMeasured, .realtimePriorityRefused: nil
        }
    }

    /// When it happened, if it says so.
    var time: Instant? {
        if case .ready(_, let time) = self { return time }
        if case .flowing(_, let time) = self { return time }
        return nil
    }

    /// What the call's session takes of it; nil if it is nothing to the session. The call ends by signaling; without it, by loss of media.
    var report: CallSession.EngineReport? {
        switch self {
        case .ready: .ready
        case .flowing: .flowing
        case .mediaReceived: .packetReceived
        case .playbackEnded: .playbackEnded
        case .digit(_, let digit, let time): .digit(digit, heldFor: time)
        case .fileFailed(_, let error): .fileFailed(error)
        case .refused: .refused
        case .ended(_, let report): .ended(report)
        case .candidate(_, let candidate): .candidate(candidate)
        case .candidatesComplete: .candidate(nil)
        case .connectionFailed(_, let failure): .connectionFailed(MediaFailure(failure))
        case .connected: .pathFound
        case .connectionQuiet: .quiet
        case .connectionBack: .back
        case .announcementEnded, .bridgeHeard, .recordingEnded, .sendingStopped, .sendingResumed, .relayFailed,
            .relayOverrun,
            .goodbyeReceived, .pathLost, .secured, .card, .effortLimited, .loadMeasured, .realtimePriorityRefused:
            nil
        }
    }
}
