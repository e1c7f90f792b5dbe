internal import AudioKit
public import LoopbackAnalysis

/// The terminal's view while a measurement runs: frames of text, a pure function of the state.
public struct LiveView: Sendable {
    /// What a frame shows.
    public struct State: Sendable {
        /// What is being done, in a few words.
        public var phase: String
        /// Time since it began, and until it ends if it ends by itself, in seconds.
        public var elapsedSeconds: Double
        /// Time that it will take, in seconds.
        public var totalSeconds: Double?
        /// Delay, drift and gaps so far.
        public var timing: TimingSummary
        /// Level shown for playing and capturing, in dBFS.
        public var playedDBFS: Double
        /// Level captured, in dBFS.
        public var capturedDBFS: Double
        /// Its held peak, in dBFS.
        public var capturedPeakDBFS: Double

        /// Makes a state.
        public init(
            phase: String, elapsedSeconds: Double, totalSeconds: Double?, timing: TimingSummary, playedDBFS: Double,
            capturedDBFS: Double, capturedPeakDBFS: Double
        ) {
            self.phase = phase
            self.elapsedSeconds = elapsedSeconds
            self.totalSeconds = totalSeconds
            self.timing = timing
            self.playedDBFS = playedDBFS
            self.capturedDBFS = capturedDBFS
            self.capturedPeakDBFS = capturedPeakDBFS
        }
    }

    /// Columns of the terminal, 40 or more.
    private let width: Int
    private let usesColour: Bool

    /// - Parameters:
    ///   - width: Columns of the terminal.
    ///   - usesColour: Whether it shows colours (and the person wants them: `NO_COLOR`).
    public init(width: Int, usesColour: Bool) {
        self.width = max(40, min(120, width))
        self.usesColour = usesColour
    }

    /// Lines of a frame; always as many.
    public static let lineCount = 7

    /// One frame, ``lineCount`` lines, none wider than the terminal.
    public func lines(_ state: State) -> [String] {
        let timing = state.timing
        let delay = timing.lastDelay.map { AudioText.fixed(AudioText.milliseconds($0), 2) + " ms" } ?? "listening…"
        let range = timing.delayRange.map {
            "\(AudioText.fixed(AudioText.milliseconds($0.lowerBound), 2)) … "
                + AudioText.fixed(AudioText.milliseconds($0.upperBound), 2)
        }
        let drift = timing.driftPPM.map { "\(AudioText.fixed($0.value, 1)) ± \(AudioText.fixed($0.error, 1)) ppm" }
        let gaps = timing.eventCount
        let worst = timing.events.map(\.lengthMilliseconds).max()
        let gapText = gaps == 0 ? "none" : "\(gaps), the longest \(AudioText.fixed(worst ?? 0, 2)) ms"
        return [
            fitted(progress(state)),
            row("delay", delay + (range.map { "   (\($0))" } ?? "")),
            row("", sparkline(timing)),
            row("drift", drift ?? "–"),
            row("gaps", gapText, colour: gaps == 0 ? nil : "31"),
            row("out", meter(state.playedDBFS, state.playedDBFS)),
            row("in", meter(state.capturedDBFS, state.capturedPeakDBFS)),
        ]
    }

    /// Erases a frame, including text that the terminal has written after it, such as `^C`: the next line begins where
    /// the frame began.
    public static let erasure = "\r\u{1B}[\(lineCount)A\u{1B}[J"

    /// Takes away what the terminal has written behind the last frame, which stays.
    public static let ending = "\r\u{1B}[K"

    /// A frame as it is written: `isFirst` or over the one before.
    public func frame(_ state: State, isFirst: Bool) -> String {
        let up = isFirst ? "" : "\u{1B}[\(Self.lineCount)A"
        return up + lines(state).map { "\r\u{1B}[2K\($0)\n" }.joined()
    }

    private func progress(_ state: State) -> String {
        let elapsed = AudioText.time(state.elapsedSeconds.rounded())
        guard let total = state.totalSeconds, total > 0 else { return "\(state.phase)  \(elapsed)" }
        let room = max(8, min(40, width - state.phase.count - 26))
        let done = Int((max(0, min(1, state.elapsedSeconds / total)) * Double(room)).rounded())
        let bar = String(repeating: "━", count: done) + String(repeating: "─", count: room - done)
        return "\(state.phase)  \(bar)  \(elapsed) of \(AudioText.time(total.rounded()))"
    }

    private func row(_ label: String, _ text: String, colour: String? = nil) -> String {
        let name = label + String(repeating: " ", count: max(0, 7 - label.count))
        let value = fitted(text, room: width - 9)
        guard usesColour, let colour else { return "  \(name)\(value)" }
        return "  \(name)\u{1B}[\(colour)m\(value)\u{1B}[0m"
    }

    private func fitted(_ text: String, room: Int? = nil) -> String {
        let room = room ?? width
        return text.count <= room ? text : text.prefix(room - 1) + "…"
    }

    /// Delay over time in the height of a line.
    private func sparkline(_ timing: TimingSummary) -> String {
        let points = timing.history.points
        guard points.count > 1, let range = timing.delayRange else { return "" }
        let steps = Array("▁▂▃▄▅▆▇█")
        let columns = width - 9
        // Less than a tenth of a millisecond is a straight line.
        let span = max(range.upperBound - range.lowerBound, 4.8)
        let shown = min(columns, points.count)
        return String(
            (0..<shown).map { column in
                let point = points[column * (points.count - 1) / max(1, shown - 1)]
                let share = (point.mean - range.lowerBound) / span
                return steps[max(0, min(7, Int(share * 7.99)))]
            })
    }

    /// −60 … 0 dBFS.
    private func meter(_ levelDBFS: Double, _ peakDBFS: Double) -> String {
        let room = max(10, width - 9 - 12)
        func place(_ level: Double) -> Int { max(0, min(room, Int(((level + 60) / 60 * Double(room)).rounded()))) }
        let filled = place(levelDBFS)
        var cells = Array(String(repeating: "█", count: filled) + String(repeating: "·", count: room - filled))
        let peak = place(peakDBFS)
        if peak > 0, peak > filled { cells[peak - 1] = "▏" }
        let text = AudioText.fixed(max(-99, levelDBFS), 0)
        return String(cells) + "  " + String(repeating: " ", count: max(0, 3 - text.count)) + text + " dBFS"
    }
}
