internal import Call
internal import CallControl
internal import Core
internal import VoiceActivity

/// A call of a device: the session that decides, and what carries out its orders.
struct ActiveCall {
    var session: CallSession
    var media = MediaSession()
    /// The rule of the answer table that matches it; nil without one, and for outgoing calls.
    var rule: AnswerRule?
    /// The part in which it is answered if no user takes it in the time of its rule; nil if the rule names none.
    var laterPart: CallPart?
    /// What has decided about the call, in words; nil if nothing special did.
    var decidedBy: String?
    /// The journal's name for the call; nil if no journal has it.
    var journalKey: String?
    /// The record, while it waits for what the call's media counted; nil before its end, and once it is on its way to the disk.
    var waitingRecord: WaitingRecord?
    /// What is noted for the record while the call runs.
    var observation = CallObservation()
    /// A recording in mid-call is being opened.
    var opensRecording = false
    /// Wakes the session at its next deadline.
    var timer = WakeTimer()

    init(_ session: CallSession) { self.session = session }

    /// A call's record that lacks the figures of its media.
    struct WaitingRecord {
        let record: CallRecord
        let turns: TurnSummary?
        /// When the call ended.
        let end: Instant
    }
}
