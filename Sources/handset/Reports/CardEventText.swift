internal import AudioDevices
internal import CallAgent
internal import Realtime

/// What happens to a sound card, in words for a log or a person.
struct CardEventText {
    let event: CardEvent
    let audio: AudioConfiguration

    /// Whether a user has to act on it.
    var isWarning: Bool {
        switch event {
        case .unavailable, .lost, .stalled, .xruns, .priorityRefused: true
        case .opened, .running, .suspended, .resumed, .report, .stopped: false
        }
    }

    /// A sentence without its full stop.
    var text: String {
        switch event {
        case .opened(let playback, let capture):
            let grants = [playback.map { ("playback", $0) }, capture.map { ("capture", $0) }].compactMap(\.self)
            let list = grants.map { name, grant in
                "\(name) \(grant.rate) Hz, \(grant.channels) channels, periods of "
                    + "\(grant.periodMilliseconds.rounded(toPlaces: 1)) ms"
            }
            return "The sound card is open: \(list.joined(separator: "; "))"
        case .unavailable(let failure):
            return "No sound for now; calls on the card fail until it can be opened: \(audio.error(failure)) "
                + CardDirectory().summary
        case .running: return "Sound flows"
        case .lost(let errno):
            let error = audio.error(CardFailure(direction: .playback, errno: errno))
            return "The sound card has gone; calls in progress are silent until it is back: \(error)"
        case .stalled(let direction): return "The sound card moves nothing (\(direction)); it is opened again"
        case .xruns(let direction, let count):
            return "The sound card ran \(direction == .playback ? "empty" : "over"), \(count) times"
        case .suspended: return "The sound card is suspended"
        case .resumed: return "The sound card is back from a suspend"
        case .priorityRefused(let errno):
            let error = RealtimeError(doing: "asking for it", errno: errno)
            return "The sound card's thread runs without real-time priority (\(error))"
        case .report: return "The sound card works again"
        case .stopped: return "The sound card is closed"
        }
    }
}
