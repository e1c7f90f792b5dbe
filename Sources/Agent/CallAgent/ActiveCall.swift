internal import Call

/// A call of a device: the session that decides, and what carries out its orders.
struct ActiveCall {
    var session: CallSession
    var media = MediaSession()
    /// The journal's name for the call; nil if no journal has it.
    var journalKey: String?
    /// A recording in mid-call is being opened.
    var opensRecording = false
    /// Wakes the session at its next deadline.
    var timer = WakeTimer()

    init(_ session: CallSession) { self.session = session }
}
