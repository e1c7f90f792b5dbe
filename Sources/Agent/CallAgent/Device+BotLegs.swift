internal import AudioPort
internal import BotCalls
internal import CallControl
internal import Logging
internal import MediaEngine
internal import CallMedia

// The legs of bots that are offered media by HTTP.
extension Device {
    /// Does what a bot's leg needs.
    func carryOut(_ order: LegOrder, ofLeg number: UInt64) {
        do {
            switch order {
            case .open(let call): legs[number] = try BotLeg(of: call, with: &media)
            case .describe:
                guard let offer = try legs[number]?.offer() else { return }
                bots?.tell(leg: number, .described(offer))
            case .connect(let answer):
                guard let bots else { return }
                try legs[number]?.start(answer: answer, on: engine) { try bots.attach(leg: number) }
            case .close:
                guard let leg = legs[number] else { return }
                legs[number] = nil
                engine.stop(leg.media)
            }
        } catch {
            bots?.tell(leg: number, .failed("its leg: \(error)"))
        }
        noteUnplaced()
    }

    /// Handles the media side's events of a bot's leg.
    ///
    /// - Returns: False if it is of something else.
    func handleLeg(_ event: MediaEvent) -> Bool {
        guard let media = event.call, let number = legs.number(of: media), let leg = legs[number] else { return false }
        switch event {
        case .candidate(_, let candidate): legs[number]?.found(candidate)
        case .candidatesComplete: bots?.tell(leg: number, .gathered)
        case .secured: bots?.tell(leg: number, .secured)
        case .connectionQuiet: bots?.tell(leg: number, .quiet)
        case .connectionBack: bots?.tell(leg: number, .back)
        case .goodbyeReceived: bots?.tell(leg: number, .goodbye)
        case .connectionFailed(_, let failure): bots?.tell(leg: number, .failed("its leg: \(failure)"))
        case .refused: bots?.tell(leg: number, .failed("the media workers have as many calls as they may have"))
        case .digit(_, let key, _):
            // A key that the caller's side does not take is lost.
            try? press(String(key), on: leg.call)
        case .relayFailed(_, let server, let error):
            logger.info(
                "A bot's leg cannot use a TURN server",
                metadata: about(leg.call, ["server": "\(server)", "error": "\(error)"]))
        case .mediaReceived, .ready, .flowing, .playbackEnded, .sendingStopped, .sendingResumed, .connected, .pathLost,
            .relayOverrun, .fileFailed, .announcementEnded, .recordingEnded, .ended, .card, .effortLimited,
            .loadMeasured,
            .realtimePriorityRefused:
            break  // Its end comes by the connection, and its sound by its port.
        }
        return true
    }

    /// A call's peer has pressed a key, which its bot gets if it takes any.
    func pressOnLeg(_ key: Character, of call: CallID) {
        guard let leg = legs.leg(of: call), leg.takesKeys else { return }
        engine.press(String(key), on: leg.media)
    }
}

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
