internal import AudioPort
internal import BotCalls
internal import Call
internal import CallControl
internal import CallMedia
internal import ICE
internal import MediaEngine
internal import SDP

/// The legs of a device's bots that are offered media by HTTP, by the numbers that their bots have given them.
struct BotLegs {
    /// What the device does for the event of a leg.
    enum Request {
        case nothing
        /// Press a key in the leg's call.
        case press(Character, CallID)
        /// Log that the leg of the call cannot use this TURN server.
        case logRelay(CallID, server: String, error: String)
    }

    private var legs: [UInt64: BotLeg] = [:]

    /// The media engine's names of all of them.
    var media: [MediaCallID] { legs.values.map(\.media) }

    private func leg(of call: CallID) -> BotLeg? { legs.values.first { $0.call == call } }

    /// Whether a call's leg is going to run and does not yet.
    ///
    /// - Parameter isExpected: Whether one that has not begun will come: the call itself does not run.
    func isUnplaced(of call: CallSession, isExpected: Bool) -> Bool {
        if let leg = leg(of: call.id) { return !leg.isRunning }
        return isExpected && call.hasParticipant
    }

    /// Does what a bot's leg needs.
    mutating func carryOut(
        _ order: LegOrder, ofLeg number: UInt64, for bots: BotCalls, with resources: inout MediaResources
    ) {
        let engine = resources.engine
        do {
            switch order {
            case .open(let call): legs[number] = try BotLeg(of: call, with: &resources)
            case .describe:
                guard let offer = try legs[number]?.offer() else { return }
                bots.tell(leg: number, .described(offer))
            case .connect(let answer):
                try legs[number]?.start(answer: answer, on: engine) { try bots.attach(leg: number) }
            case .close:
                guard let leg = legs.removeValue(forKey: number) else { return }
                engine.stop(leg.media)
            }
        } catch {
            bots.tell(leg: number, .failed("its leg: \(error)"))
        }
    }

    /// Handles the media side's events of a leg.
    ///
    /// - Returns: Nil if it is of something else.
    mutating func handle(_ event: MediaEvent, for bots: BotCalls?) -> Request? {
        guard let media = event.call, let (number, leg) = legs.first(where: { $0.value.media == media }) else {
            return nil
        }
        switch event {
        case .candidate(_, let candidate): legs[number]?.found(candidate)
        case .candidatesComplete: bots?.tell(leg: number, .gathered)
        case .secured: bots?.tell(leg: number, .secured)
        case .connectionQuiet: bots?.tell(leg: number, .quiet)
        case .connectionBack: bots?.tell(leg: number, .back)
        case .goodbyeReceived: bots?.tell(leg: number, .goodbye)
        case .connectionFailed(_, let failure): bots?.tell(leg: number, .failed("its leg: \(failure)"))
        case .refused: bots?.tell(leg: number, .failed("the media workers have as many calls as they may have"))
        case .digit(_, let key, _): return .press(key, leg.call)
        case .relayFailed(_, let server, let error):
            return .logRelay(leg.call, server: "\(server)", error: "\(error)")
        case .mediaReceived, .ready, .flowing, .playbackEnded, .sendingStopped, .sendingResumed, .connected, .pathLost,
            .relayOverrun, .fileFailed, .announcementEnded, .bridgeHeard, .recordingEnded, .ended, .card,
            .effortLimited,
            .loadMeasured,
            .realtimePriorityRefused:
            break  // Its end comes by the connection, and its sound by its port.
        }
        return .nothing
    }

    /// A call's peer has pressed a key, which its bot gets if it takes any.
    func press(_ key: Character, of call: CallID, on engine: MediaEngine) {
        guard let leg = leg(of: call), leg.takesKeys else { return }
        engine.press(String(key), on: leg.media)
    }
}

/// A media leg to a bot: this side makes the only offer, and ICE and DTLS connect it, without signaling.
private struct BotLeg {
    /// The call whose sound it carries.
    let call: CallID
    /// The media engine's name for the connection and the stream.
    let media: MediaCallID
    private let placement: MediaPlacement
    private let credentials: ICECredentials
    private var negotiation: MediaNegotiation
    private var candidates: [String]
    /// Whether a media worker runs it.
    private(set) var isRunning = false

    /// Begins to connect it: candidates are gathered.
    init(of call: CallID, with resources: inout MediaResources) throws {
        self.call = call
        (placement, negotiation) = try resources.prepareLeg()
        credentials = resources.makeCredentials()
        let plan = try resources.connectionPlan(credentials, isControlling: true)
        (media, candidates) = try resources.engine.connect(plan, at: placement)
    }

    mutating func found(_ candidate: String) { candidates.append(candidate) }

    /// The offer, with the candidates found so far.
    mutating func offer() throws -> String {
        negotiation.bring(credentials, candidates: candidates)
        guard let text = try negotiation.offer().sdp else {
            throw DescriptionError("the offer has no description")
        }
        return text
    }

    /// Runs it with the bot's answer.
    ///
    /// - Parameter line: Makes the media worker's side of the bot's port.
    mutating func start(answer: String, on engine: MediaEngine, line: () throws -> PortLine) throws {
        let (audio, _) = try negotiation.accept(.answer(answer))
        guard let remote = try negotiation.remote(for: audio), audio.ice != nil, audio.direction == .sendrecv else {
            throw DescriptionError("the bot's answer is not one with ICE, DTLS and sound in both directions")
        }
        let plan = try negotiation.plan(for: audio, audio: AudioBehaviour(source: .program), start: .whenConnected)
        _ = try engine.start(plan, at: placement, connection: media, line: try line())
        isRunning = true
        engine.connect(media, to: remote)
    }

    /// Whether its peer takes telephone keys.
    var takesKeys: Bool { negotiation.sentEvents != nil }
}
