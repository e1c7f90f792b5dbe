public import AudioKit
internal import AudioPort
public import BotCalls
public import CallFlows
public import CallMeetings
internal import CallMedia
public import CallPrograms
public import CallVoicemail
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
        /// A call flow in TwiML.
        case flow(FlowPlan)
        /// A room, in which the call meets others.
        case conference(MeetingPlan)
        /// A mailbox, in which the caller leaves a message.
        case voicemail(VoicemailPlan)
        /// This process, by ``Device/providePorts(_:_:)``; silence without that.
        case program

        /// The word of the source on the control socket, which is that of configurations if it has one.
        public var name: String {
            switch self {
            case .silence: Kind.silence.rawValue
            case .echo: Kind.echo.rawValue
            case .tone: Kind.tone.rawValue
            case .file: Kind.play.rawValue
            case .card: Kind.card.rawValue
            case .exec: Kind.exec.rawValue
            case .bot: Kind.bot.rawValue
            case .flow: Kind.flow.rawValue
            case .conference: Kind.conference.rawValue
            case .voicemail: Kind.voicemail.rawValue
            case .program: "program"
            }
        }

        /// The source of the media worker.
        var sound: AudioBehaviour.Source {
            switch self {
            case .silence: .silence
            case .card: .card
            case .exec, .bot, .flow, .conference, .voicemail, .program: .program
            case .echo: .echo
            case .tone(let frequency, let level): .tone(frequencyHz: frequency, levelDBFS: level)
            case .file(let path, let loops): .file(path: path, loops: loops)
            }
        }

        /// What a device sets up for a source at its start.
        enum Needs: Equatable {
            case nothing, card, programs, flows, rooms, mailboxes
            case bot(BotPlan)
        }

        var needs: Needs {
            switch self {
            case .silence, .echo, .tone, .file, .program: .nothing
            case .card: .card
            case .exec: .programs
            case .flow: .flows
            case .conference: .rooms
            case .voicemail: .mailboxes
            case .bot(let plan): .bot(plan)
            }
        }

        var program: ProgramPlan? { if case .exec(let plan) = self { plan } else { nil } }
        var bot: BotPlan? { if case .bot(let plan) = self { plan } else { nil } }
        var flow: FlowPlan? { if case .flow(let plan) = self { plan } else { nil } }
        var meeting: MeetingPlan? { if case .conference(let plan) = self { plan } else { nil } }
        /// The mailbox; nil for another source.
        public var mailbox: VoicemailPlan? { if case .voicemail(let plan) = self { plan } else { nil } }
    }

    /// Where the sound that the caller hears comes from.
    public var source = Source.echo
    /// What programs on this machine may attach to an established call: ``Source/exec(_:)`` or ``Source/bot(_:)``. With such a
    /// source it is that.
    public var attachment: Source?
    /// Whether the call ends when its file has been played.
    public var hangsUpAfterFile = false
    /// The longest that a call may last once it is established; nil for no limit. Four hours by default: a peer that answers probes
    /// without being there would otherwise keep its place for ever.
    public var maximumDuration: Duration? = .seconds(4 * 3_600)
    /// A folder in which each call is recorded, in a file that is named after the time and the peer, and replaces none. It is made if it
    /// is missing.
    public var recordingFolder: String?
    /// How long recordings are kept, and how many.
    public var recordingLimits = RecordingLimits()
    /// How calls are recorded.
    public var recordingFormat = RecordingFormat()
    /// A file for captures of received packets, so that calls can be replayed (``StreamReplay``): this name for the
    /// first call, with `-2` before its extension for the second, and so on for at most ``maximumCaptures`` calls. It
    /// is not a configuration key: it is used in the search for a fault.
    public var capture: String?
    /// Calls that are captured.
    public static let maximumCaptures = 100

    /// Makes an echo.
    public init() {}

    /// The kinds of source, by the names of `source`.
    enum Kind: String, CaseIterable {
        case echo, play, tone, silence, card, exec, bot, flow, conference, voicemail
    }

    /// What follows a file that is played, by the names of `then`.
    enum Sequel: String, CaseIterable {
        case silence, hangup
    }

    /// What can be attached to calls, by the names of `attach`.
    enum Attachment: String, CaseIterable {
        case exec, bot
    }

    /// The keys of the section `behaviour`.
    struct Keys: ConfigKeys {
        let name = ConfigKey<String>.parsed(
            "name", "name", "what `answer.rules` call it ([policy.md](policy.md)); required in `behaviours`",
            show: \.self
        ) { text throws(ConfigValueFault) in
            if text.utf8.count <= 64, !text.isEmpty { return text }
            throw ConfigValueFault("must have 1 to 64 bytes")
        }.unset("none")
        let source = ConfigKey.choice(
            "source", of: Kind.self,
            "what a caller hears; `card`: talk on a sound card; `conference`: meet the other callers; `voicemail`: leave a message"
        )
        .defaulting(to: .echo)
        let file = ConfigKey.path("file", "with `source: play`, which requires it: WAV or Ogg Opus")
        let loop = ConfigKey.bool("loop", "with `source: play`: play it again and again").defaulting(to: false)
        let sequel = ConfigKey.choice("then", of: Sequel.self, "with `source: play`: what follows the file").defaulting(
            to: .silence)
        let frequency = ConfigKey.number(
            "frequency_hz", in: 20...20_000, unit: "Hz", "with `source: tone`"
        ).defaulting(to: 440)
        let level = ConfigKey.number("level_dbfs", in: -96...0, unit: "dBFS", "with `source: tone`: its peak")
            .defaulting(to: -12)
        let command = ConfigKey.command(
            "command", "with `source: exec`, which requires it: the program that takes part in each call")
        let environment = ConfigKey<[String]>.list(
            "environment", of: "names",
            "with `source: exec`: variables that the program inherits although they are secrets of this configuration (`…_env`) or the "
                + "service manager's"
        ) { text throws(ConfigValueFault) in
            if SmallFile.isVariableName(text) { return text }
            // Someone may have put the secret itself here, so it is not shown.
            throw ConfigValueFault("must be the name of an environment variable: letters, digits and _")
        }.unset("none")
        let rate = ConfigKey<PortRate>.parsed(
            "rate_hz", "whole number", in: PortRate.allCases.map { "\($0.rawValue)" }.joined(separator: ", "),
            unit: "Hz",
            "with `source: exec`: the sample rate that the program takes and gives", show: { "\($0.rawValue)" }
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
        let answerTimeout = ConfigKey.milliseconds(
            "answer_timeout_ms", in: 100...60_000,
            "with `source: exec`: how long a caller waits until the program reads or sends sound; then the call is rejected, or hears the fallback"
        ).defaulting(to: .seconds(5))
        let fallback = ConfigKey.path(
            "fallback",
            "with `source: exec`: WAV or Ogg Opus, up to a minute: what callers hear, once, if the program fails")
        let bot = ConfigKey.section(
            "bot", BotConfiguration.Keys.self,
            "with `source: bot`, which requires it: the bot that takes part in each call ([bots.md](bots.md))")
        let flow = ConfigKey.section(
            "flow", FlowConfiguration.Keys.self,
            "with `source: flow`, which requires it: the call flow in TwiML that each call follows ([flows.md](flows.md))"
        )
        let conference = ConfigKey.section(
            "conference", ConferenceConfiguration.Keys.self,
            "with `source: conference`: the room that each call joins ([conference.md](conference.md))")
        let voicemail = ConfigKey.section(
            "voicemail", VoicemailConfiguration.Keys.self,
            "with `source: voicemail`, which requires it: the mailbox in which each caller leaves a message ([voicemail.md](voicemail.md))"
        )
        let attach = ConfigKey.choice(
            "attach", of: Attachment.self,
            "what `handset control attach` brings into calls of another source; `command` or `bot` says how to start it"
        ).unset("nothing, or the program, bot or flow that is the source")
        let maximumDuration = ConfigKey.seconds(
            "max_call_seconds", in: 0...604_800,
            "longest call; it is then hung up, once the sound that its program or bot has sent by then is played; 0 for no limit"
        ).defaulting(to: BehaviourConfiguration().maximumDuration ?? .zero)
        let recordFolder = ConfigKey.outputFolder(
            "record_folder", "record calls, in a file for each (mode 0600); made if it is missing")
        let recordDays = ConfigKey.integer(
            "record_days", in: 1...36_500, unit: "days",
            "remove older `.wav` and `.opus` files from `record_folder`, which must contain nothing else"
        ).unset("kept for ever")
        let recordMegabytes = ConfigKey.integer(
            "record_megabytes", in: 1...1_000_000_000, unit: "MB",
            "remove the oldest `.wav` and `.opus` files from `record_folder` beyond this total"
        ).unset("as much as the disk takes")
        let recordFormat = ConfigKey.choice(
            "record_format", of: RecordingFormat.Container.self, "of recordings: WAV, or Ogg Opus"
        ).defaulting(to: RecordingFormat().container)
        let recordChannels = ConfigKey.integer(
            "record_channels", in: 1...2, "of recordings: 1 has the peer, 2 has the peer left and this side right"
        ).defaulting(to: RecordingFormat().channels)
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let before = problems.count
        let kind = section.value(\.source, &problems)
        let isChosen = problems.count == before
        var file = section.value(\.file, &problems)
        // Another source does not use the file.
        if kind == .play, file != nil, !section.isReadable(\.file, &problems) { file = nil }
        let loops = section.value(\.loop, &problems)
        let frequency = section.value(\.frequency, &problems)
        let level = section.value(\.level, &problems)
        let command = section.value(\.command, &problems)
        let format = PortFormat(
            rate: section.value(\.rate, &problems), encoding: section.value(\.encoding, &problems))
        hangsUpAfterFile = section.value(\.sequel, &problems) == .hangup
        if hangsUpAfterFile, loops {
            problems.append(section.problem(\.sequel, "is hangup, and with loop: true the file never ends; remove one"))
        }
        let longest = section.value(\.maximumDuration, &problems)
        maximumDuration = longest == .zero ? nil : longest
        recordingFolder = section.value(\.recordFolder, &problems)
        recordingLimits.days = section.value(\.recordDays, &problems)
        recordingLimits.megabytes = section.value(\.recordMegabytes, &problems)
        recordingFormat.container = section.value(\.recordFormat, &problems)
        recordingFormat.channels = section.value(\.recordChannels, &problems)
        let attach = section.value(\.attach, &problems)
        let bargeIn = section.value(\.bargeIn, &problems)
        let answerTimeout = section.value(\.answerTimeout, &problems)
        let fallback = section.value(\.fallback, &problems)
        if let fallback { section.play(fallback, \.fallback, &problems) }
        let environment = section.value(\.environment, &problems)
        let bot = section.value(\.bot, &problems).flatMap { BotConfiguration.plan($0, &problems) }
        let flow = section.value(\.flow, &problems).flatMap {
            FlowConfiguration.plan($0, isUsed: kind == .flow, &problems)
        }
        let conference = section.value(\.conference, &problems).map { ConferenceConfiguration.plan($0, &problems) }
        let voicemail = section.value(\.voicemail, &problems).flatMap {
            VoicemailConfiguration.plan($0, isUsed: kind == .voicemail, &problems)
        }
        switch kind {
        case .echo: source = .echo
        case .silence: source = .silence
        case .card: source = .card
        case .tone: source = .tone(frequencyHz: frequency, levelDBFS: level)
        case .exec, .bot: break
        case .conference: source = .conference(conference ?? MeetingPlan())
        case .voicemail:
            if let voicemail {
                source = .voicemail(voicemail)
                if let recordingFolder,
                    DeviceConfiguration.areSame(voicemail.folder, recordingFolder, section.fileChecks)
                {
                    problems.append(
                        section.problem(\.recordFolder, "must be another folder than that of voicemail; change one"))
                }
            } else if !section.has(\.voicemail) {
                problems.append(section.problem(\.voicemail, "is required with source: voicemail"))
            }
        case .flow:
            if let flow {
                source = .flow(flow)
            } else if !section.has(\.flow) {
                problems.append(section.problem(\.flow, "is required with source: flow"))
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
        switch (kind, attach) {
        case (.exec, _), (_, .exec):
            if let command {
                var plan = ProgramPlan(command: command, format: format, bargeIn: bargeIn)
                plan.answerTimeout = answerTimeout
                plan.fallback = fallback
                plan.environment = environment ?? []
                attachment = .exec(plan)
            } else if !section.has(\.command) {
                let key = kind == .exec ? "source" : "attach"
                problems.append(section.problem(\.command, "is required with \(key): exec"))
            }
        case (.bot, _), (_, .bot):
            if let bot {
                attachment = .bot(bot)
            } else if !section.has(\.bot) {
                let key = kind == .bot ? "source" : "attach"
                problems.append(section.problem(\.bot, "is required with \(key): bot"))
            }
        case (.echo, nil), (.play, nil), (.tone, nil), (.silence, nil), (.card, nil), (.flow, nil), (.conference, nil),
            (.voicemail, nil):
            break
        }
        if kind == .exec || kind == .bot, let attachment { source = attachment }
        if isChosen { Self.rejectIdle(section, kind, attach, &problems) }
    }

    /// A key that belongs to another source would be ignored silently.
    private static func rejectIdle(
        _ section: KeyedSection<Keys>, _ kind: Kind, _ attach: Attachment?, _ problems: inout [ConfigProblem]
    ) {
        func reason(_ needed: Kind) -> String {
            "is for source: \(needed.rawValue), and the source is \(kind.rawValue); change it, or remove this key"
        }
        if kind != .play {
            section.rejectIdle(\.file, reason(.play), &problems)
            section.rejectIdle(\.loop, reason(.play), &problems)
            section.rejectIdle(\.sequel, reason(.play), &problems)
        }
        if kind != .tone {
            section.rejectIdle(\.frequency, reason(.tone), &problems)
            section.rejectIdle(\.level, reason(.tone), &problems)
        }
        if kind != .exec, attach != .exec {
            section.rejectIdle(\.command, reason(.exec), &problems)
            section.rejectIdle(\.environment, reason(.exec), &problems)
            section.rejectIdle(\.rate, reason(.exec), &problems)
            section.rejectIdle(\.encoding, reason(.exec), &problems)
            section.rejectIdle(\.bargeIn, reason(.exec), &problems)
            section.rejectIdle(\.answerTimeout, reason(.exec), &problems)
            section.rejectIdle(\.fallback, reason(.exec), &problems)
        }
        if kind != .bot, attach != .bot { section.rejectIdle(\.bot, reason(.bot), &problems) }
        if kind != .flow { section.rejectIdle(\.flow, reason(.flow), &problems) }
        if kind != .conference { section.rejectIdle(\.conference, reason(.conference), &problems) }
        if kind != .voicemail { section.rejectIdle(\.voicemail, reason(.voicemail), &problems) }
        if [Kind.exec, .bot, .card, .flow, .conference, .voicemail].contains(kind) {
            section.rejectIdle(
                \.attach, "is for calls of another source than \(kind.rawValue); change the source, or remove this key",
                &problems)
        }
    }
}

extension BehaviourConfiguration {
    /// Has programs, voices and commands not inherit these variables.
    mutating func withhold(_ variables: Set<String>) {
        func withholding(_ source: Source) -> Source {
            switch source {
            case .exec(var plan):
                plan.withheldVariables = variables
                return .exec(plan)
            case .flow(var plan):
                plan.withheldVariables = variables
                return .flow(plan)
            case .voicemail(var plan):
                plan.withheldVariables = variables
                return .voicemail(plan)
            case .silence, .echo, .tone, .file, .card, .bot, .conference, .program: return source
            }
        }
        source = withholding(source)
        attachment = attachment.map(withholding)
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
