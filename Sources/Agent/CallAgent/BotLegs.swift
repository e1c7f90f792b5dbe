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
    private var legs: [UInt64: BotLeg] = [:]

    subscript(number: UInt64) -> BotLeg? {
        get { legs[number] }
        set { legs[number] = newValue }
    }

    /// The number of the leg whose connection or stream the media engine knows by this name.
    func number(of media: MediaCallID) -> UInt64? { legs.first { $0.value.media == media }?.key }

    /// The media engine's names of all of them.
    var media: [MediaCallID] { legs.values.map(\.media) }

    /// The leg that a call's sound goes to.
    func leg(of call: CallID) -> BotLeg? { legs.values.first { $0.call == call } }

    /// Whether a call's leg is going to run and does not yet.
    ///
    /// - Parameter isExpected: Whether one that has not begun will come: the call itself does not run.
    func isUnplaced(of call: CallSession, isExpected: Bool) -> Bool {
        if let leg = leg(of: call.id) { return !leg.isRunning }
        return isExpected && call.hasParticipant
    }
}

/// A media leg to a bot: this side makes the only offer, and ICE and DTLS connect it, without signaling.
struct BotLeg {
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
