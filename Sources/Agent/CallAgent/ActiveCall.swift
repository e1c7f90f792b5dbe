internal import CallControl
internal import MediaEngine

/// What a device keeps of a call that has not ended.
struct ActiveCall {
    var machine: CallMachine
    /// Where our side of offer and answer stands; nil before media is prepared.
    var negotiation: MediaNegotiation?
    /// Where the call's media is going to run.
    var placement: MediaPlacement?
    /// What the call plays and records.
    var audio: AudioBehaviour
    /// The media engine's name for its connection, if ICE connects it.
    var connection: MediaCallID?
    /// Candidates on their way.
    var candidates = CandidateExchange()
    /// Sends the call's signals, one after the other.
    var signalling: Task<Void, Never>?
    /// Waits for a peer that has fallen silent.
    var patience: Task<Void, Never>?
    /// The media worker's name for it, once it runs; with ICE the same as its connection's.
    var media: MediaCallID?
    /// The invite, once there is one.
    var invite: InviteID?
    /// For a call we make: what its invite is known by until the service gives it an id.
    var idempotencyKey: String?
    /// Sleeps until the machine's next deadline.
    var timer: Task<Void, Never>?
    /// Sleeps until the policy answers.
    var answerTimer: Task<Void, Never>?
    /// The record, once the machine has ended; the call is told as ended when its media has ended too.
    var record: CallRecord?
    /// The journal's name for it.
    var journalKey: String?
    /// Whether its record is on disk, or is not to be.
    var isKept = false
    /// What its media saw, once that has ended.
    var report: MediaReport? {
        get { if case .seen(let report) = ending { report } else { nil } }
        set { ending = newValue.map { .seen($0) } ?? .none }
    }
    private var ending = Ending.none

    // A report is large, and most calls have not ended.
    private indirect enum Ending {
        case none
        case seen(MediaReport)
    }

    init(machine: CallMachine, audio: AudioBehaviour, invite: InviteID? = nil, idempotencyKey: String? = nil) {
        self.machine = machine
        self.audio = audio
        self.invite = invite
        self.idempotencyKey = idempotencyKey
    }

    /// Whether its microphone and loudspeaker are the sound card's.
    var usesCard: Bool { audio.source == .card }
}
