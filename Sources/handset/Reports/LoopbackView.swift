internal import Files
internal import Glibc
internal import Loopback
internal import Realtime
internal import Synchronization

/// What is seen while a measurement runs: a view that changes in place on a terminal, and lines elsewhere. On standard
/// error, so that standard output has the result alone.
final class LoopbackView: Sendable {
    /// Whether there is a terminal to show it on.
    let isLive: Bool
    private let live: LiveView
    private let progress = ProgressLines()
    private let hasFrame = Mutex(false)

    init() {
        var size = winsize()
        let hasSize = unsafe ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        let term = unsafe getenv("TERM").map { unsafe String(cString: $0) } ?? "dumb"
        isLive = isatty(STDERR_FILENO) == 1 && term != "dumb"
        live = LiveView(
            width: hasSize ? Int(size.ws_col) : 80, usesColour: TerminalStyle.standardError.isEnabled)
    }

    func begin(_ line: String) { progress.say(line) }

    /// Shows progress.
    func tell(_ event: CardLoopback.Progress) {
        switch event {
        case .state(let state): if isLive { show(state) }
        case .minute(let minute): say(LoopbackSummary.line(minute))
        case .card(let absence?):
            say("The card is gone (\(SystemError(absence))); waiting for it to come back", isWarning: true)
        case .card(nil): say("The card is back")
        case .repeats(let withheld):
            say(
                "Something happened while \(withheld == 1 ? "a figure was" : "\(withheld) figures were") measured; playing "
                    + "those parts of the signal again", isWarning: true)
        case .again(let ahead, let holdUp):
            say(
                "This machine kept Handset's thread waiting for \(Int(holdUp.rounded())) ms, and the card ran empty; "
                    + "measuring again with \(Int(ahead)) ms ahead", isWarning: true)
        }
    }

    /// Leaves the last frame where it is.
    func end() {
        let isOverFrame = hasFrame.withLock { hasFrame in
            defer { hasFrame = false }
            return hasFrame
        }
        if isOverFrame { Terminal.write(LiveView.ending, to: STDERR_FILENO) }
    }

    private func show(_ state: LiveView.State) {
        let isFirst = hasFrame.withLock { hasFrame in
            defer { hasFrame = true }
            return !hasFrame
        }
        Terminal.write(live.frame(state, isFirst: isFirst), to: STDERR_FILENO)
    }

    /// A line that stays, above the view.
    private func say(_ line: String, isWarning: Bool = false) {
        let isOverFrame = hasFrame.withLock { hasFrame in
            defer { hasFrame = false }
            return hasFrame
        }
        if isOverFrame { Terminal.write(LiveView.erasure, to: STDERR_FILENO) }
        if isWarning { progress.warn(line) } else { progress.say(line) }
    }
}
