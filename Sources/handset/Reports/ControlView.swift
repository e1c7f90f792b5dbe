internal import ControlWire

/// The output of `handset control watch`: events as lines, and on a terminal a line of level meters beneath them. Pure:
/// it returns text to be written as it is.
struct ControlView {
    /// Columns of the terminal; nil if there is none, and then no meters.
    let width: Int?
    private var levels: ControlLevels?
    private var isMuted: Bool
    private var hasMeters = false

    /// - Parameter status: What the device was like at the beginning.
    init(width: Int?, status: ControlStatus?) {
        self.width = width
        levels = status?.levels
        isMuted = status?.sound?.isMuted ?? false
    }

    /// What to write for an event.
    mutating func take(_ event: ControlEvent, of account: String? = nil) -> String {
        if case .sound(let sound) = event { isMuted = sound.isMuted }
        if case .levels(let levels) = event {
            self.levels = levels
            return clear() + meters()
        }
        guard let line = ControlText.event(event) else { return "" }
        let name = account.map { ControlText.printable($0) + ": " } ?? ""
        return clear() + name + line + "\n" + meters()
    }

    /// What to write at the end.
    mutating func end() -> String { clear() }

    private mutating func clear() -> String {
        defer { hasMeters = false }
        return hasMeters ? "\r\u{1B}[2K" : ""
    }

    private mutating func meters() -> String {
        guard let width, let levels else { return "" }
        hasMeters = true
        let isMuted = isMuted ? "  MUTED" : ""
        // Labels, numbers and gaps take 36 columns, and the last one stays empty, so that the line is never two.
        let room = max(5, (width - 37 - isMuted.count) / 2)
        return "mic " + Self.meter(levels.microphoneDBFS, levels.microphonePeakDBFS, room)
            + "   out " + Self.meter(levels.loudspeakerDBFS, levels.loudspeakerPeakDBFS, room) + isMuted
    }

    /// −60 … 0 dBFS.
    static func meter(_ level: Double, _ peak: Double, _ room: Int) -> String {
        func place(_ value: Double) -> Int {
            Int(((min(0, max(-60, value)) + 60) / 60 * Double(room)).rounded())
        }
        var cells = Array(repeating: "·", count: room)
        for index in 0..<place(level) { cells[index] = "█" }
        if place(peak) > place(level) { cells[place(peak) - 1] = "▏" }
        let number = "\(Int(max(-99, min(99, level)).rounded()))"
        return cells.joined() + number.leftPadded(to: 5) + " dBFS"
    }
}
