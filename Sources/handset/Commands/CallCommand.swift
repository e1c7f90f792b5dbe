internal import ArgumentParser
internal import AudioKit
internal import CallAgent
internal import CallControl
internal import Logging
internal import CallMedia
internal import MediaEngine
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import Files
internal import Core

/// `handset call`: places one call, and reports on it.
struct CallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call", abstract: "Place a call, play and record, and report how it was.",
        discussion: """
            Without --config the call goes to the server in the callee's address, on this machine as the demo's
            account "caller", which `handset serve` has unless it is configured otherwise.
            """)

    @Argument(help: "Whom to call: user@host, user@host:port, or a user of the configured server.")
    var callee: String

    @Option(help: "A WAV or Ogg Opus file to play.", completion: .file())
    var play: String?

    @Option(
        help: "A sound card to talk on, in place of --play: default, a name, by-id/…; see `handset devices`.",
        completion: Completions.cards)
    var device: String?

    @Option(
        help: "The card to play on, if it is another than --device; \"none\" for none.", completion: Completions.cards)
    var playback: String?

    @Option(
        help: "The card to capture from, if it is another than --device; \"none\" for none.",
        completion: Completions.cards)
    var capture: String?

    @Option(help: "A WAV file to record in what comes back.", completion: .file())
    var record: String?

    @Option(help: "The account's configuration file.", completion: .file())
    var config: String?

    @Option(help: "Which account of the configuration file, if it has several.", completion: Completions.accounts)
    var account: String?

    @Option(
        help: "Base URL of the signaling server, instead of the one that follows from callee or configuration.",
        transform: ServerURL.argument)
    var server: String?

    @Flag(
        inversion: .prefixedNo,
        help:
            "Connect as browsers do, by ICE and DTLS, or with --no-webrtc to a plain address with keys in the signaling."
    )
    var webrtc: Bool?

    @Option(help: "Telephone keys to press once media flows: 0-9, *, #, A-D, and ! for the flash of the hook.")
    var press: String?

    @Option(help: "Hang up after this many seconds; without it, a second after the file is over.")
    var duration: Double?

    @Option(help: "How long to let it ring, in seconds; 0 for ever.")
    var ttl: Int = 30

    @Flag(
        help: """
            Let it ring although no device of the callee is connected, in case one comes. Without this the call ends at \
            once then, unless the configuration has invites.payload, with which devices are woken by a push.
            """)
    var wait = false

    @Option(
        name: .customLong("minimum-likeness"),
        help: "Fail if what comes back is less like what was sent than this, 0 to 1. Needs --play.")
    var minimumLikeness: Double?

    @Flag(help: "Print the report as one JSON object.")
    var json = false

    @Option(help: "Include the CPU time and memory of another process in the report, as NAME=PID. May be repeated.")
    var watch: [String] = []

    @OptionGroup var logs: LogOptions

    func validate() throws {
        _ = try CalleeAddress(callee)
        if play != nil, usesCard { throw ValidationError("--play and a sound card exclude each other.") }
        try CallLimits.check(press: press, duration: duration, ttl: ttl, minimumLikeness: minimumLikeness)
        if minimumLikeness != nil, play == nil {
            throw ValidationError("--minimum-likeness needs --play: it compares what comes back with the file.")
        }
        for watched in watch where WatchedProcess(watched) == nil {
            throw ValidationError("--watch \(watched) is not NAME=PID with the id of a running process.")
        }
    }

    func run() async throws {
        logs.bootstrap()
        let logger = Logger(label: "handset")
        let configuration = try deviceConfiguration()
        let user = try CalleeAddress(callee).user
        try checkFiles()
        let progress = ProgressLines()
        let ending = EndRequest()
        let (device, group) = try DeviceFactory(configuration: configuration, failsFast: true, logger: logger).make()
        let audio = configuration.audio
        var run = CallRun(
            callee: callee, play: play, record: record, watched: watch.compactMap(WatchedProcess.init),
            cards: usesCard ? (audio.playback, audio.capture) : nil)

        progress.say("Logging in at \(configuration.account.eventsURL)")
        let started = MonotonicClock.now
        do throws(SignalingError) {
            try await device.connect()
        } catch {
            await device.shutDown()
            throw error
        }
        run.connectTime = started.duration(to: MonotonicClock.now)
        await follow(device, user, &run, progress, ending, configuration)
        if !ending.isMade { await device.finishTones() }
        await device.shutDown()
        try? await group.shutdownGracefully()

        if run.hasSoundToCompare { progress.say("Comparing what was sent with what came back") }
        let report = run.report()
        Terminal.print(json ? report.json : report.text)
        if let failure = report.failure { throw ExitCode(failure.rawValue) }
        if let minimumLikeness, (report.likeness ?? 0) < minimumLikeness {
            throw CommandFailure(
                .failed, "what came back is less like what was sent than the \(minimumLikeness) asked for")
        }
    }

    /// After a file's end, for what is still on its way: a second, and the jitter buffers at both ends.
    private static let lastSound = Duration.milliseconds(1_200)

    private var usesCard: Bool { device != nil || playback != nil || capture != nil }

    /// A file that cannot be used is told of before anybody is called.
    private func checkFiles() throws(AudioFileError) {
        var played: FileIdentity?
        if let play { played = try AudioFileReader(path: play).identity }
        if let record { try WAVWriter.check(path: record, sparing: [played].compactMap(\.self)) }
    }

    /// Places the call and follows it to its end.
    private func follow(
        _ device: Device, _ user: UserID, _ run: inout CallRun, _ progress: ProgressLines, _ ending: EndRequest,
        _ configuration: DeviceConfiguration
    ) async {
        let audio = AudioBehaviour(
            source: usesCard ? .card : play.map { .file(path: $0, loops: false) } ?? .silence,
            recording: run.recordingPath)
        progress.say("Calling \(callee)")
        let call = await device.call(
            user, audio: audio, timeToLive: CallLimits.timeToLive(seconds: ttl),
            onlineOnly: !wait && configuration.invites.callsOnlineOnly)
        // Waits as long as the process lives; to hang up a call that is over does nothing.
        Task {
            await ending.wait()
            await device.hangUp(call)
        }
        var isPlayed = false
        var hangUp: Task<Void, Never>?
        defer { hangUp?.cancel() }
        func hangUpLater(_ delay: Duration) {
            hangUp?.cancel()
            hangUp = Task {
                try? await Task.sleep(for: delay)
                if !Task.isCancelled { await device.hangUp(call) }
            }
        }
        for await event in device.events {
            switch event {
            case .answered: progress.say("Answered")
            case .established(_, let time):
                run.establishedAfter = time
                let end = duration == nil && play == nil ? "; Ctrl-C hangs up" : ""
                progress.say("Established after \(time.milliseconds.rounded(toPlaces: 1)) ms\(end)")
                if let press { run.keyError = await self.press(press, on: call, of: device, progress) }
                if let duration { hangUpLater(.seconds(duration)) } else if isPlayed { hangUpLater(Self.lastSound) }
            case .flowing(_, let time, _):
                run.setUpTime = time
                progress.say("Media flows both ways after \(time.milliseconds.rounded(toPlaces: 1)) ms")
            case .playbackEnded:
                progress.say("The file is over")
                isPlayed = true
                if duration == nil, run.establishedAfter != nil { hangUpLater(Self.lastSound) }
            case .digit(_, let digit, _): progress.say("The peer pressed \(digit)")
            case .sendingStopped(_, let reason): progress.warn("The call sends no more: \(reason.rawValue)")
            case .sendingResumed: progress.say("The call sends again")
            case .fileFailed(_, let error):
                progress.warn("\(error)")
                run.fileError = error
            case .loadChanged(let load):
                if load.complexityLimit < 10 {
                    progress.say("This machine is busy: Opus is limited to complexity \(load.complexityLimit)")
                }
            case .realtimePriorityRefused(let error): progress.say("Media runs without real-time priority: \(error)")
            case .signaling(.reconnecting): progress.warn("The connection is lost; connecting anew")
            case .card(let event):
                let text = CardEventText(event: event, audio: configuration.audio)
                if text.isWarning { progress.warn(text.text) } else { progress.say(text.text) }
            case .ended(_, let record, let report):
                run.isInterrupted = ending.isMade
                run.ended(record, report, await device.cardStatistics)
                return
            case .transferRequested(_, let target, let isAccepted):
                progress.say("The peer asks for a call to \(target)" + (isAccepted ? "" : ", which is refused"))
            case .transferProgress(_, let target, let state):
                progress.say("The transfer to \(target): \(state.rawValue)")
            case .signaling, .identified, .incoming, .invited, .invite, .playing, .playingEnded, .recording,
                .recordingEnded,
                .attached, .detached, .speech, .interrupted, .responded:
                break
            }
        }
    }

    /// - Returns: Why the keys cannot be pressed; nil if they are.
    private func press(
        _ digits: String, on call: CallID, of device: Device, _ progress: ProgressLines
    ) async -> String? {
        do throws(DigitError) {
            try await device.press(digits, on: call)
            progress.say("Pressing \(digits)")
            return nil
        } catch {
            progress.warn("Keys cannot be pressed: \(error)")
            return "\(error)"
        }
    }

    private func deviceConfiguration() throws -> DeviceConfiguration {
        var configuration = try CallerConfiguration(config: config, account: account, server: server, webrtc: webrtc)
            .read(for: callee)
        if usesCard {
            configuration.behaviour.source = .card
            if let name = playback ?? device { configuration.audio.playback = AudioConfiguration.name(name) }
            if let name = capture ?? device { configuration.audio.capture = AudioConfiguration.name(name) }
        }
        return configuration
    }
}
