internal import CallControl
internal import CallMedia
internal import CallParticipation
internal import JSON
internal import MediaEngine

/// A device's state of a call that has not ended.
struct ActiveCall {
    var machine: CallMachine
    /// What the call plays and records.
    let audio: AudioBehaviour
    var invite: CallInvite
    var media = MediaSession()
    var timers = CallTimers()
    /// Notices that the peer has vanished; nil before the call is established, or if that is turned off.
    var silence: SilenceWatch?
    /// The caller's offer, while the call waits for its participant.
    var waitingOffer: JSONValue?
    /// How turns were taken so far, if a program takes part.
    var turns = TurnFigures()
    /// What the configuration said of it when it began.
    var rules = CallRules()
    /// What has happened to the call's sound while it runs.
    var sound = RunningSound()
    /// What acknowledged our answer, over SIP.
    var acknowledgement: Acknowledgement?
    /// The peer's keys, each of which counts once.
    var keys = ReceivedKeys()
    var transfer = TransferState.none
    /// What the peer has asked for before the service confirmed to us that the call is answered.
    var waitingTransfer: CallTransfer.Wish?
    /// The target of its program's or bot's transfer, until the service has confirmed to us that the call is answered.
    var programTransfer: UserID?
    /// For the record: who asked for this call, and who has taken the place of one of its sides.
    var transferredBy: UserID?
    var transferredTo: UserID?
    /// The participant that has begun, or that has placed the call; nil otherwise, and once it was detached.
    var participant: (any CallParticipant)?
    /// Our call that this one replaces when it is answered.
    var replaces: CallID?
    /// Our call that ends when this one is answered, because either side has transferred it.
    var predecessor: CallID? {
        if case .inPlaceOf(let old) = transfer { return old }
        return replaces
    }
    /// Why this device hangs up, once it does.
    private(set) var hangUpCause: CallRecord.HangUpCause?
    private var ending = Ending.running(journalKey: nil)

    private indirect enum Ending {
        case running(journalKey: String?)
        /// The machine has ended; the record is on disk, or is not to be, if it `isKept`.
        case ended(CallRecord, isKept: Bool)
    }

    init(machine: CallMachine, audio: AudioBehaviour, invite: CallInvite) {
        self.machine = machine
        self.audio = audio
        self.invite = invite
    }

    /// Whether its program was detached, so that later events of it do not count.
    var hasLeft: Bool { sound.hasLeft }

    /// Notes why this device hangs up; the first reason counts.
    mutating func noteHangUp(_ cause: CallRecord.HangUpCause) { hangUpCause = hangUpCause ?? cause }

    /// Whether its sound is that of a participant.
    var hasParticipant: Bool { audio.source == .program }

    /// Whether its microphone and loudspeaker are the sound card's.
    var usesCard: Bool { audio.source == .card }

    var direction: CallRecord.Direction { machine.isOutgoing ? .outgoing : .incoming }

    // MARK: Its end

    /// Notes that the journal knows the call by this key.
    mutating func began(inJournal key: String) { ending = .running(journalKey: key) }

    /// Notes that the call's machine has ended.
    ///
    /// - Returns: The journal's key for the call, which ``wasKept()`` follows; nil if no journal has it.
    mutating func end(_ record: CallRecord) -> String? {
        guard case .running(let key) = ending else { return nil }
        ending = .ended(record, isKept: key == nil)
        return key
    }

    /// Notes that the call's record is on disk, or cannot be.
    mutating func wasKept() {
        if case .ended(let record, _) = ending { ending = .ended(record, isKept: true) }
    }

    /// The record, once the machine has ended; the call is reported as ended when its media has ended too.
    var record: CallRecord? {
        guard case .ended(let record, _) = ending else { return nil }
        return record
    }

    /// The record that may be reported: it is on disk, or is not kept.
    var keptRecord: CallRecord? {
        guard case .ended(let record, isKept: true) = ending else { return nil }
        return record
    }
}

/// What a call's invite is known by.
enum CallInvite {
    /// The invite came in.
    case received(InviteID)
    /// The service has not given it an id yet.
    case sending(idempotencyKey: IdempotencyKey)
    case sent(InviteID, idempotencyKey: IdempotencyKey)

    /// The service's id; nil until there is one.
    var id: InviteID? {
        switch self {
        case .received(let id), .sent(let id, _): id
        case .sending: nil
        }
    }

    /// What an invite that this device sends is known by until the service gives it an id.
    var idempotencyKey: IdempotencyKey? {
        switch self {
        case .sending(let key), .sent(_, let key): key
        case .received: nil
        }
    }

    /// Notes the id that the service has given.
    mutating func noteSent(as id: InviteID) {
        if let idempotencyKey { self = .sent(id, idempotencyKey: idempotencyKey) }
    }
}
