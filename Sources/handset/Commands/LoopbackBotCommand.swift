internal import ArgumentParser
internal import AudioKit
internal import BotCalls
internal import Loopback
internal import BotProbe
internal import BotWire
internal import CallAgent
internal import Files
internal import Core
internal import Realtime

/// `handset loopback bot`: a voice bot, as its callers hear it.
struct LoopbackBotCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bot",
        abstract: "Measure a voice bot from outside: response times, barge-in, talk-over, cut words.",
        discussion: """
            Calls the bot, asks questions, listens to answers, interrupts some, and measures at the caller's ear. Given a URL, it \
            speaks the bot's wire directly, as a device does in a call, without an exchange. Otherwise it calls the bot, as by \
            `handset call`. The built-in questions are in English. docs/loopback.md explains each figure and its accuracy. \
            Ends with 0 if all is within the thresholds, 12 if something is not, and 13 if the bot was not heard.
            """)

    @Argument(
        help: """
            The bot's URL (ws://, wss://, a webhook by http:// or https://, tcp:// with --wire audiosocket), or the callee: \
            user@host, user@host:port, or a user of the configured server.
            """)
    var bot: String

    @OptionGroup var wire: LoopbackBotWireOptions

    @Option(help: "Questions to ask, each answer heard to its end, 0…100.")
    var turns = 5

    @Option(help: "Answers to interrupt after that, 0…20.")
    var interruptions = 3

    @Option(
        help: "Telephone keys to press after that, such as 5#; each must be answered by a sound, or the bot's hang-up.")
    var press: String?

    @Flag(help: "Wait for the bot to hang up at the end.")
    var expectHangUp = false

    @Option(help: "WAV or Ogg Opus: a question, instead of the built-in ones; may be given more than once.")
    var say: [String] = []

    @Option(help: "WAV or Ogg Opus: what interrupts the bot's answers, instead of the built-in sentence.")
    var interrupt: String?

    @Option(help: "WAV or Ogg Opus: the bot's greeting, to find out whether its ends are cut off.")
    var greeting: String?

    @Option(help: "Seconds of silence that end an answer of the bot, 0.3…10.")
    var pause = 1.5

    @Option(help: "Seconds to wait for an answer, 1…60.")
    var patience = 10.0

    @Option(help: "Keep what was heard in this WAV file.", completion: .file())
    var record: String?

    @OptionGroup var files: LoopbackFileOptions

    @OptionGroup var limits: LoopbackBotLimitOptions

    @Option(help: "The account's configuration file, for a bot that is called.", completion: .file())
    var config: String?

    @Option(help: "Which account of the configuration file, if it has several.")
    var account: String?

    @Option(
        help: "Base URL of the signaling server, instead of the one that follows from the callee or the configuration.",
        transform: ServerURL.argument)
    var server: String?

    @Flag(
        inversion: .prefixedNo, help: "Connect as browsers do, by ICE and DTLS, or with --no-webrtc to a plain address."
    )
    var webrtc: Bool?

    @Option(help: "How long to ring, in seconds; 0 for no limit.")
    var ttl: Int = 30

    @OptionGroup var logs: LogOptions

    func validate() throws {
        if try wire.plan(for: bot) == nil { _ = try CalleeAddress(bot) }
        try CallLimits.check(press: press, duration: nil, ttl: ttl, minimumLikeness: nil)
        guard (0...100).contains(turns) else { throw ValidationError("--turns must be 0…100, not \(turns).") }
        guard (0...20).contains(interruptions) else {
            throw ValidationError("--interruptions must be 0…20, not \(interruptions).")
        }
        guard (0.3...10).contains(pause) else { throw ValidationError("--pause must be 0.3…10, not \(pause).") }
        guard (1...60).contains(patience) else {
            throw ValidationError("--patience must be 1…60, not \(patience).")
        }
        if press?.contains("!") == true { throw ValidationError("--press must be made of 0-9, *, # and A-D.") }
        _ = try limits.thresholds()
    }

    func run() async throws {
        logs.bootstrap()
        let probe = BotProbe(plan, try speech())
        let reference = try greeting.map { try AudioFileReader.samples(ofFile: $0) }
        if let record {
            try WAVWriter.check(
                path: record,
                sparing: (say + [interrupt, greeting].compactMap(\.self)).compactMap(FileIdentity.init(path:)))
        }
        let output = try BotOutput(files, thresholds: limits.thresholds())
        let startedAt = MonotonicClock.wallTime.rfc3339
        let ending = EndRequest()
        var measured: MeasuredBot
        if let plan = try wire.plan(for: bot) {
            measured = try await MeasuredBot(plan, probe, ending)
        } else {
            let configuration = try CallerConfiguration(
                config: config, account: account, server: server, webrtc: webrtc
            ).read(for: bot)
            measured = try await MeasuredBot(bot, configuration, probe, ringSeconds: ttl, ending)
        }
        if let record {
            var writer = try WAVWriter(path: record)
            try writer.append(measured.recording.heard.span)
            try writer.finish()
        }
        var run = BotRun(
            startedAt: startedAt, measurement: BotAnalysis(measured.recording).measure(greeting: reference))
        run.facts = measured.facts
        run.ownDelays = measured.ownDelays
        try output.finish(&run, isInterrupted: ending.isMade)
    }

    private var plan: ProbePlan {
        var plan = ProbePlan()
        plan.turns = turns
        plan.interruptions = interruptions
        plan.keys = press ?? ""
        plan.expectsHangUp = expectHangUp
        plan.pause = AudioFormat.samples(milliseconds: Int(pause * 1_000))
        plan.patience = AudioFormat.samples(milliseconds: Int(patience * 1_000))
        return plan
    }

    private func speech() throws -> CallerSpeech {
        let questions = try say.map { try AudioFileReader.samples(ofFile: $0) }
        let interruption = try interrupt.map { try AudioFileReader.samples(ofFile: $0) }
        let usual = CallerSpeech.builtIn
        let speech = CallerSpeech(
            questions: questions.isEmpty ? usual.questions : questions, interruption: interruption)
        guard let speech else {
            throw CommandFailure(
                .audioFileUnusable, "a file of --say or --interrupt has no sound. Give it recordings of speech.")
        }
        return speech
    }
}
