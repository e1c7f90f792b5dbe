/// One fault of a call.
public struct Finding: Hashable, Sendable {
    /// Whose fault it looks like.
    public enum Side: String, CaseIterable, Hashable, Sendable {
        /// This device, its configuration, or its machine.
        case ours = "this_side"
        /// The other device.
        case peer = "other_side"
        /// The network from there to here.
        case pathHere = "path_here"
        /// The network from here to there.
        case pathThere = "path_there"
        /// The network, without a direction.
        case path
        /// The signaling service.
        case service
        /// The program or bot that takes part.
        case bot = "program"
        /// The figures leave it open.
        case unclear = "not_clear"

        /// In words for people, such as "the network to this device".
        public var words: String {
            switch self {
            case .ours: "this device or its machine"
            case .peer: "the other side"
            case .pathHere: "the network to this device"
            case .pathThere: "the network from this device"
            case .path: "the network"
            case .service: "the service"
            case .bot: "the program or bot"
            case .unclear: "not clear whose fault"
            }
        }
    }

    /// The kind of fault.
    public enum Code: String, CaseIterable, Hashable, Sendable {
        case setUpFailed = "set_up_failed"
        case nothingReceived = "nothing_received"
        case nothingSentArrives = "nothing_sent_arrives"
        case peerSendsNoSound = "peer_sends_no_sound"
        case wrongKeys = "wrong_keys"
        case wrongPayloadType = "wrong_payload_type"
        case wrongFormat = "wrong_format"
        case unknownSource = "unknown_source"
        case noPackets = "no_rtp"
        case lossHere = "loss_here"
        case lossThere = "loss_there"
        case jitter
        case reordering
        case longDelay = "long_delay"
        case slowMedia = "slow_media"
        case peerVanished = "peer_vanished"
        case machineStalled = "machine_stalled"
        case diskSlow = "disk_slow"
        case muted = "microphone_muted"
        case cardGaps = "card_gaps"
        case slowProgram = "slow_program"
        case wrongClockRate = "wrong_clock_rate"
        case clockDrift = "clock_drift"
        case microphoneSilent = "microphone_silent"
        case microphoneQuiet = "microphone_quiet"
        case peerSilent = "peer_silent"
        case peerQuiet = "peer_quiet"
        case programSilent = "program_silent"
        case severalStreams = "several_streams"
        case onHold = "on_hold"
        case peerClipped = "peer_clipped"
        case clipped = "sound_clipped"
        case programFailed = "program_failed"
        case programStuck = "program_stuck"
        case fileFailed = "file_failed"
        case serviceLost = "service_lost"
        case connectionLost = "connection_lost"
        case killed = "device_stopped"
    }

    /// The kind of fault.
    public let code: Code
    /// Whose fault it looks like.
    public let side: Side
    /// What happened, as a sentence.
    public let text: String
    /// The figures that it follows from.
    public let evidence: String
    /// What to try, as a sentence.
    public let advice: String

    init(_ code: Code, _ side: Side, _ text: String, because evidence: String, advice: String) {
        self.code = code
        self.side = side
        self.text = text
        self.evidence = evidence
        self.advice = advice
    }
}
