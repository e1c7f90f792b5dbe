internal import AudioKit
internal import AudioPort
public import BotCalls
public import CallPrograms
internal import ConfigReader

/// What an answered call does: one source of sound, and optionally a recording.
public struct BehaviourConfiguration: Sendable, Equatable {
    /// Where the sound that the caller hears comes from.
    public enum Source: Sendable, Equatable {
        case silence
        case echo
        /// `levelDBFS` is the peak's.
        case tone(frequencyHz: Double, levelDBFS: Double)
        /// A WAV or Ogg Opus file.
        case file(path: String, loops: Bool)
        /// The sound card: its microphone is sent, and the caller is played on its loudspeaker.
        case card
        /// A program, which hears the caller and speaks to it.
        case exec(ProgramPlan)
        /// A voice bot, which is connected with as a telephone service connects with it.
        case bot(BotPlan)
    }

    /// Where the sound that the caller hears comes from.
    public var source = Source.echo
    /// A folder in which each call's received audio is kept as a WAV named after its invite. It is made if it is missing.
    public var recordingFolder: String?
    /// How long recordings are kept, and how many.
    public var recordingLimits = RecordingLimits()
    /// A file for captures of received packets, so that calls can be replayed (``StreamReplay``): this name for the
    /// first call, with `-2` before its extension for the second, and so on for at most ``maximumCaptures`` calls. It
    /// is not a configuration key: it is used while somebody searches for a fault.
    public var capture: String?
    /// Calls that are captured.
    public static let maximumCaptures = 100

    /// Makes an echo.
    public init() {}

    /// The kinds of source, by the names of `source`.
    enum Kind: String, CaseIterable {
        case echo, play, tone, silence, card, exec, bot
    }

    /// The keys of the section `behaviour`.
    struct Keys: ConfigKeys {
        let source = ConfigKey.choice("source", of: Kind.self, "what a caller hears; `card`: talk on a sound card")
            .defaulting(to: .echo)
        let file = ConfigKey.path("file", "with `source: play`, which requires it: WAV or Ogg Opus")
        let loop = ConfigKey.bool("loop", "with `source: play`: play it again and again").defaulting(to: false)
        let frequency = ConfigKey.number(
            "frequency_hz", in: 20...20_000, unit: "Hz", "with `source: tone`"
        ).defaulting(to: 440)
        let level = ConfigKey.number("level_dbfs", in: -96...0, unit: "dBFS", "with `source: tone`: its peak")
            .defaulting(to: -12)
        let command = ConfigKey.command(
            "command", "with `source: exec`, which requires it: the program that takes part in each call")
        let rate = ConfigKey<PortRate>.parsed(
            "rate_hz", "whole number", in: PortRate.allCases.map { "\($0.rawValue)" }.joined(separator: ", "),
            unit: "Hz",
            "with `source: exec`: samples a second that the program takes and gives", show: { "\($0.rawValue)" }
        ) { text throws(ConfigValueFault) in
            guard let rate = Int(text).flatMap(PortRate.init) else {
                throw ConfigValueFault("must be 8000, 16000, 24000 or 48000, not \(text)")
            }
            return rate
        }.defaulting(to: PortFormat().rate)
        let encoding = ConfigKey.choice(
            "encoding", of: PortFormat.Encoding.self, "with `source: exec`: what a sample is"
        ).defaulting(to: PortFormat().encoding)
        let bargeIn = ConfigKey.choice(
            "barge_in", of: BargeInMode.self,
            "with `source: exec`: `local`: the caller's speech lowers the program, and stops it"
        ).defaulting(to: .off)
        let bot = ConfigKey.section(
            "bot", BotConfiguration.Keys.self,
            "with `source: bot`, which requires it: the bot that takes part in each call ([bots.md](bots.md))")
        let recordFolder = ConfigKey.outputFolder(
            "record_folder", "keep what callers say, a WAV for each call (mode 0600); made if it is missing")
        let recordDays = ConfigKey.integer(
            "record_days", in: 1...36_500, unit: "days",
            "remove older `.wav` files from `record_folder`, which is to have nothing else"
        ).unset("kept for ever")
        let recordMegabytes = ConfigKey.integer(
            "record_megabytes", in: 1...1_000_000_000, unit: "MB",
            "remove the oldest `.wav` files from `record_folder` beyond so much in all"
        ).unset("as much as the disk takes")
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let before = problems.count
        let kind = section.value(\.source, &problems)
        let isChosen = problems.count == before
        var file = section.value(\.file, &problems)
        // Of another source the file is of no use, whatever it is.
        if kind == .play, file != nil, !section.isReadable(\.file, &problems) { file = nil }
        let loops = section.value(\.loop, &problems)
        let frequency = section.value(\.frequency, &problems)
        let level = section.value(\.level, &problems)
        let command = section.value(\.command, &problems)
        let format = PortFormat(
            rate: section.value(\.rate, &problems), encoding: section.value(\.encoding, &problems))
        let bargeIn = section.value(\.bargeIn, &problems)
        recordingFolder = section.value(\.recordFolder, &problems)
        recordingLimits.days = section.value(\.recordDays, &problems)
        recordingLimits.megabytes = section.value(\.recordMegabytes, &problems)
        let bot = section.value(\.bot, &problems).flatMap { BotConfiguration.plan($0, &problems) }
        switch kind {
        case .echo: source = .echo
        case .silence: source = .silence
        case .card: source = .card
        case .tone: source = .tone(frequencyHz: frequency, levelDBFS: level)
        case .exec:
            if let command {
                source = .exec(ProgramPlan(command: command, format: format, bargeIn: bargeIn))
            } else if !section.has(\.command) {
                problems.append(section.problem(\.command, "is required with source: exec"))
            }
        case .bot:
            if let bot {
                source = .bot(bot)
            } else if !section.has(\.bot) {
                problems.append(section.problem(\.bot, "is required with source: bot"))
            }
        case .play:
            if let file {
                source = .file(path: file, loops: loops)
                section.play(file, \.file, &problems)
            } else if !section.has(\.file) {
                problems.append(section.problem(\.file, "is required with source: play"))
            }
        }
        if !section.has(\.recordFolder) {
            let reason = "is for record_folder, which is missing; add that, or remove this key"
            section.rejectIdle(\.recordDays, reason, &problems)
            section.rejectIdle(\.recordMegabytes, reason, &problems)
        }
        if isChosen { Self.rejectIdle(section, kind, &problems) }
    }

    /// A key that belongs to another source would be ignored silently.
    private static func rejectIdle(_ section: KeyedSection<Keys>, _ kind: Kind, _ problems: inout [ConfigProblem]) {
        func reason(_ needed: Kind) -> String {
            "is for source: \(needed.rawValue), and the source is \(kind.rawValue); change it, or remove this key"
        }
        if kind != .play {
            section.rejectIdle(\.file, reason(.play), &problems)
            section.rejectIdle(\.loop, reason(.play), &problems)
        }
        if kind != .tone {
            section.rejectIdle(\.frequency, reason(.tone), &problems)
            section.rejectIdle(\.level, reason(.tone), &problems)
        }
        if kind != .exec {
            section.rejectIdle(\.command, reason(.exec), &problems)
            section.rejectIdle(\.rate, reason(.exec), &problems)
            section.rejectIdle(\.encoding, reason(.exec), &problems)
            section.rejectIdle(\.bargeIn, reason(.exec), &problems)
        }
        if kind != .bot { section.rejectIdle(\.bot, reason(.bot), &problems) }
    }
}

extension KeyedSection {
    /// Reads the beginning of a file as a call would: one that cannot be played would fail every call.
    func play(_ file: String, _ key: KeyPath<Keys, ConfigKey<String>>, _ problems: inout [ConfigProblem]) {
        guard fileChecks != .none else { return }
        do throws(AudioFileError) {
            var reader = try AudioFileReader(path: file)
            var block = [Int16](repeating: 0, count: 4_800)
            var room = block.mutableSpan
            _ = try reader.read(into: &room)
        } catch {
            problems.append(problem(key, "\(error)"))
        }
    }
}
