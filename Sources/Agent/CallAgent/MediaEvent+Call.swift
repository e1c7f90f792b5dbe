internal import CallMedia
internal import MediaEngine

extension MediaEvent {
    /// The call or leg that it is about; nil if it is about the engine.
    var call: MediaCallID? {
        switch self {
        case .mediaReceived(let id, _), .ready(let id, _), .flowing(let id, _), .playbackEnded(let id),
            .digit(let id, _, _), .sendingStopped(let id, _), .sendingResumed(let id), .candidate(let id, _),
            .candidatesComplete(let id),
            .connected(let id, _), .secured(let id), .connectionQuiet(let id), .connectionBack(let id),
            .pathLost(let id), .relayFailed(let id, _, _), .relayOverrun(let id, _, _, _),
            .connectionFailed(let id, _), .goodbyeReceived(let id), .fileFailed(let id, _), .refused(let id),
            .announcementEnded(let id, _, _), .recordingEnded(let id, _), .ended(let id, _):
            id
        case .card, .effortLimited, .loadMeasured, .realtimePriorityRefused: nil
        }
    }
}
