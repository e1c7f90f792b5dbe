internal import ArgumentParser
internal import AudioKit
internal import CallAgent
internal import CallControl
internal import Logging
internal import Loopback
internal import LoopbackAnalysis
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import Files
internal import Core

/// `handset loopback call`: a whole call to a device that echoes.
struct LoopbackCallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Measure a whole call to a device that echoes: delay by stage, gaps, quality of speech.",
        discussion: """
            Without --mouth no sound card is needed: the test signal is played into the call as a file. The callee and the \
            call's options are those of `handset call`. Without --config the demo's account "caller" calls.

            With --mouth the call is on a sound card (--device), and another card, which is no part of the call, measures \
            it from outside: its output is wired to the microphone of the call's card, and its input to the loudspeaker. \
            docs/loopback.md has the wiring, and what is taken out of the delay.
            """)

    @Argument(
        help: """
            The callee: user@host, user@host:port, or a user of the configured server. Without it (and with --mouth) the \
            command measures the call of another phone.
            """)
    var callee: String?

    @OptionGroup var caller: CallerOptions

    @Flag(
        inversion: .prefixedNo, help: "Connect as browsers do, by ICE and DTLS, or with --no-webrtc to a plain address."
    )
    var webrtc: Bool?

    @Option(
        help: """
            A WAV or Ogg Opus file with speech, played behind the test signal and compared with what comes back; without \
            it, synthetic voices.
            """, completion: .file())
    var play: String?

    @Option(help: "Keep what came back in this WAV file.", completion: .file())
    var record: String?

    @Option(help: "Seconds for which delay and gaps are measured, 1…600.")
    var seconds = 10.0

    @Option(
        help: """
            Rounds of sweep and tones, 1…9: what is disturbed in one round is taken from the next.
            """)
    var rounds = CallLoopback.usualRounds

    @OptionGroup var tones: LoopbackToneOptions

    @Option(help: "How long to ring, in seconds; 0 for no limit.")
    var ttl: Int = 30

    @OptionGroup var cards: LoopbackCallCardOptions
    @OptionGroup var report: LoopbackReportOptions
    @OptionGroup var logs: LogOptions

    func validate() throws {
        _ = try callee.map(CalleeAddress.init)
        guard callee != nil || cards.mouth != nil else {
            throw ValidationError(
                "There is no callee. Give user@host, such as echo@localhost; or, to measure the call of another phone, "
                    + "--mouth and --ear.")
        }
        try CallLimits.check(press: nil, duration: nil, ttl: ttl, minimumLikeness: nil)
        guard (1...600).contains(seconds) else { throw ValidationError("--seconds must be 1…600, not \(seconds).") }
        guard LoopbackSignal.roundRange.contains(rounds) else {
            throw ValidationError("--rounds must be 1…9, not \(rounds).")
        }
        try cards.check(callsSomebody: callee != nil)
        try report.checkLimits()
    }

    func run() async throws {
        logs.bootstrap()
        let configuration = try callee.map { callee in
            var configuration = try CallerConfiguration(
                caller, webrtc: webrtc
            ).read(
                for: callee)
            cards.apply(to: &configuration)
            return configuration
        }
        let output = try LoopbackOutput(report, mode: .call)
        let speech = try play.map { try AudioFileReader.samples(ofFile: $0) }
        let loopback = CallLoopback(
            carrierSeconds: seconds, rounds: rounds, tonesHz: tones.frequencies, speech: speech)
        let ends = try MeasuredEnds(
            loopback, cards, call: configuration?.audio, keepsRecordingAt: record,
            sparing: [play.flatMap(FileIdentity.init(path:))].compactMap(\.self))
        defer { ends.remove() }
        let startedAt = MonotonicClock.wallTime.rfc3339
        let ending = EndRequest()
        var run: LoopbackRun
        if let callee, let configuration {
            var call = try MeasuredCall(callee: callee, ends: ends, ringSeconds: ttl)
            try await place(&call, configuration, loopback, ending)
            ProgressLines().say("Measuring what came back")
            let path = call.path
            run = try ends.run(loopback, startedAt: startedAt, heard: call.heard, path: path)
            call.describe(&run)
        } else {
            ProgressLines().say("Measuring the call of another phone for some \(Int(loopback.seconds) + 2) s")
            let heard = await ends.listen(settleSeconds: 0, ending)
            run = try ends.run(loopback, startedAt: startedAt, heard: heard, path: nil)
        }
        try output.finish(&run, isInterrupted: ending.isMade)
    }

    /// Places the call, and lets it end.
    private func place(
        _ call: inout MeasuredCall, _ configuration: DeviceConfiguration, _ loopback: CallLoopback, _ ending: EndRequest
    ) async throws {
        let logger = Logger(label: "handset")
        let (device, group) = try DeviceFactory(configuration: configuration, failsFast: true, logger: logger).make()
        ProgressLines().say("Logging in at \(configuration.account.eventsURL)")
        do throws(SignalingError) {
            try await device.connect()
        } catch {
            await device.shutDown()
            throw error
        }
        let settling = cards.mouth == nil ? 0 : MeasuredCall.settleSeconds
        let seconds = cards.mouth == nil ? loopback.fileSeconds : loopback.seconds
        ProgressLines().say("Calling \(call.callee) for some \(Int(seconds) + settling + 2) s")
        await call.follow(device, ending, configuration)
        await device.shutDown()
        try? await group.shutdownGracefully()
        try call.check()
    }
}
