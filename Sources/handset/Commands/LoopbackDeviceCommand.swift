internal import ArgumentParser
internal import AudioDevices
internal import Loopback
internal import Core
internal import Realtime

/// `handset loopback device`: a card, out and back in.
struct LoopbackDeviceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "device",
        abstract: "Measure a sound card: out, and back in through a cable, the air or a loopback device.",
        discussion: """
            Plays a test signal at −12 dBFS and less, for some 20 seconds. Connect the output with the input, or put the \
            microphone before the loudspeaker, and turn noise suppression and echo cancellation off.
            """)

    @OptionGroup var card: LoopbackCardOptions
    @OptionGroup var report: LoopbackReportOptions

    @Option(help: "Seconds for which delay and gaps are measured, 1…600.")
    var seconds = 10.0

    @OptionGroup var tones: LoopbackToneOptions

    func validate() throws {
        guard (1...600).contains(seconds) else { throw ValidationError("--seconds must be 1…600, not \(seconds).") }
        try report.checkLimits()
    }

    func run() throws {
        let output = try LoopbackOutput(report, mode: .device)
        var loopback = CardLoopback(card)
        loopback.carrierSeconds = seconds
        loopback.tonesHz = tones.frequencies
        let ending = EndRequest()
        let view = LoopbackView()
        view.begin("Measuring \(card.names): listening, then noise, a sweep and a tone will be heard")
        var run = try loopback.measure(follows: view.isLive, mustStop: { ending.isMade }, tell: view.tell)
        view.end()
        try output.finish(&run, isInterrupted: ending.isMade)
    }
}

/// `handset loopback soak`: a card, for hours.
struct LoopbackSoakCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "soak",
        abstract: "Measure a sound card for hours: a line a minute, and the worst moments kept as WAV files.",
        discussion: "Ends after --duration, or with a signal (Ctrl-C); either way it reports on all of it.")

    @OptionGroup var card: LoopbackCardOptions
    @OptionGroup var report: LoopbackReportOptions

    @Option(help: "How long, such as 8h, 90m, 1h30m or 45s; without it, until a signal ends it.")
    var duration: String?

    @Option(
        help: "The folder in which the worst moments are kept; it is made if it is missing.", completion: .directory)
    var moments = "loopback-moments"

    func validate() throws {
        if let duration, SoakLength(duration) == nil {
            throw ValidationError("--duration \(duration) is not a time of at least 2s, such as 8h, 90m, 1h30m or 45s.")
        }
        try report.checkLimits()
    }

    func run() throws {
        let output = try LoopbackOutput(report, mode: .soak)
        let loopback = CardLoopback(card)
        let ending = EndRequest()
        let view = LoopbackView()
        let folder = MomentFolder(path: moments)
        let length = duration.flatMap(SoakLength.init)
        view.begin("Soaking \(card.names)" + (duration.map { " for \($0)" } ?? ", until Ctrl-C"))
        var run = try loopback.soak(
            seconds: length?.seconds, mustStop: { ending.isMade },
            keep: { moments throws(LoopbackError) in try folder.keep(moments) }, tell: view.tell)
        view.end()
        // To end a soak is not to cut it short.
        try output.finish(&run, isInterrupted: false)
    }
}

extension CardLoopback {
    fileprivate init(_ card: LoopbackCardOptions) {
        var configuration = AudioDeviceConfiguration(
            playback: card.playback ?? card.device, capture: card.capture ?? card.device)
        configuration.periodMilliseconds = card.periodMilliseconds
        configuration.realtimePriority = 20
        self.init(configuration, startedAt: MonotonicClock.wallTime.rfc3339)
        bufferMilliseconds = card.bufferMilliseconds
        maximumDelayMilliseconds = card.longestDelayMilliseconds
    }
}

extension LoopbackCardOptions {
    /// The cards, for a person.
    fileprivate var names: String {
        let (out, back) = (playback ?? device, capture ?? device)
        return out == back ? "\"\(out)\"" : "\"\(out)\", heard by \"\(back)\""
    }
}

/// A time as people write it: 8h, 90m, 1h30m, 45s.
struct SoakLength: Equatable, Sendable {
    /// 2 or more.
    let seconds: Double

    init?(_ text: String) {
        var total = 0.0
        var rest = Substring(text)
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isNumber || $0 == "." }
            guard let number = Double(digits) else { return nil }
            rest = rest.dropFirst(digits.count)
            let scales: [Character: Double] = ["h": 3_600, "m": 60, "s": 1]
            guard let unit = rest.first, let scale = scales[unit] else { return nil }
            rest = rest.dropFirst()
            total += number * scale
        }
        guard total >= 2, total <= 366 * 86_400 else { return nil }
        seconds = total
    }
}
