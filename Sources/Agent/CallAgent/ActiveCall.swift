internal import Call
internal import CallParticipation

/// A call of a device: the session that decides, and what carries out its orders.
struct ActiveCall {
    var session: CallSession
    var media = MediaSession()
    /// The participant that has begun, or that has placed the call; nil otherwise, and once it was detached.
    var participant: (any CallParticipant)?
    /// The journal's name for the call; nil if no journal has it.
    var journalKey: String?
    /// A recording in mid-call is being opened.
    var opensRecording = false
    /// Wakes the session at its next deadline.
    var timer = WakeTimer()

    init(_ session: CallSession) { self.session = session }
}
