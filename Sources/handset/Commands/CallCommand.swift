internal import ArgumentParser
internal import AudioKit
internal import CallAgent
internal import CallControl
internal import Logging
internal import Loopback
internal import CallMedia
internal import CallScript
internal import MediaEngine
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import Files
internal import Core

/// `handset call`: places one call, and reports on it.
struct CallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call", abstract: "Place a call, play and record, and report its quality.",
        discussion: """
            Without --config the call goes to the server in the callee's address, on this machine as the demo's
            account "caller", which `handset serve` has unless it is configured otherwise.
            """)

    @Argument(help: "The callee: user@host, user@host:port, or a user of the configured server.")
    var callee: String

    @Option(help: "A WAV or Ogg Opus file to play.", completion: .file())
    var play: String?

    @Option(
        help: "A sound card to talk on, in place of --play: default, a name, by-id/…; see `handset devices`.",
        completion: Completions.cards)
    var device: String?

    @Option(
        help: "The card to play on, if it is not --device; \"none\" for none.", completion: Completions.cards)
    var playback: String?

    @Option(
        help: "The card to capture from, if it is not --device; \"none\" for none.",
        completion: Completions.cards)
    var capture: String?

    @Option(help: "A WAV file in which to record what comes back.", completion: .file())
    var record: String?

    @OptionGroup var caller: CallerOptions

    @Flag(
        inversion: .prefixedNo,
        help:
            "Connect as browsers do, by ICE and DTLS, or with --no-webrtc to a plain address with keys in the signaling."
    )
    var webrtc: Bool?

    @Option(
        help: """
            Telephone keys to press once media flows: 0-9, *, #, A-D, and ! for the flash of the hook. A comma is a pause of \
            a second, p waits until a prompt begins, and w until a second after its end (30 s at most): 1,,2 or w1w2.
            """)
    var press: String?

    @Option(
        help: """
            Follow the call script in this file: play, wait for sound or silence, press keys, and expect lengths or \
            likenesses of answers. See docs/call-scripts.md.
            """, completion: .file())
    var script: String?

    @Option(
        name: .customLong("junit"),
        help: "Write each statement of --script as a test case of JUnit's XML to this file; - for standard output.")
    var junit: String?

    @Option(help: "Hang up after this many seconds; without it, a second after the file has ended.")
    var duration: Double?

    @Option(help: "How long to ring, in seconds; 0 for no limit.")
    var ttl: Int = 30

    @Flag(
        help: """
            Ring even if no device of the callee is connected, in case one connects. Without this such a call ends at \
            once, unless the configuration has invites.payload, which wakes devices by a push.
            """)
    var wait = false

    @Option(
        name: .customLong("minimum-likeness"),
        help:
            "The least likeness of the received sound to the sent one, 0 to 1; below it the command fails. Needs --play."
    )
    var minimumLikeness: Double?

    @Flag(help: "Print the report as one JSON object.")
    var json = false

    @Option(help: "Include the CPU time and memory of another process in the report, as NAME=PID. May be repeated.")
    var watch: [String] = []

    @OptionGroup var logs: LogOptions

    func validate() throws {
        _ = try CalleeAddress(callee)
        if play != nil, usesCard { throw ValidationError("--play and a sound card exclude each other.") }
        try CallLimits.check(press: nil, duration: duration, ttl: ttl, minimumLikeness: minimumLikeness)
        if let press, let problem = KeySequence.problem(with: press) {
            throw ValidationError("--press \(problem).")
        }
        if script != nil, play != nil || usesCard || press != nil {
            throw ValidationError(
                "--script excludes --play, --press and a sound card: the script says what the call does.")
        }
        if keys?.listens == true, play != nil || usesCard {
            throw ValidationError("--press with p or w listens in place of --play and of a sound card. Use --script.")
        }
        if junit != nil, script == nil {
            throw ValidationError("--junit needs --script: its statements are the tests.")
        }
        if junit == "-", json { throw ValidationError("--json and --junit - would both be on standard output.") }
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
        let file = try script.map { try CallScriptFile($0) }
        if let junit { try ReportFiles.check(junit) }
        var scripted: ScriptedCall?
        if let file { scripted = try ScriptedCall(file.script, sounds: file.sounds) }
        if let keys, keys.listens { scripted = try ScriptedCall(CallScript(pressing: keys)) }
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
        try await follow(device, user, &run, progress, ending, configuration, scripted)
        if !ending.isMade { await device.sharedMedia.finishTones() }
        await device.shutDown()
        try? await group.shutdownGracefully()

        let caller = scripted?.finish(run.record, isInterrupted: ending.isMade)
        if let caller, file == nil, run.establishedAfter != nil {
            run.keyError = caller.results.first { $0.outcome == .failed }?.text
        }
        if run.hasSoundToCompare { progress.say("Comparing what was sent with what came back") }
        let report = run.report()
        if let file, let caller {
            try file.writeRecordings(of: caller)
            try ReportFiles.deliver(junit, file.report(caller, callee: callee).junit)
        }
        if junit != "-" { Terminal.print(json ? report.json : report.text) }
        if let failure = report.failure { throw ExitCode(failure.rawValue) }
        if let file, let caller, let failure = file.failure(caller) { throw failure }
        if let minimumLikeness, (report.likeness ?? 0) < minimumLikeness {
            throw CommandFailure(
                .failed, "the received sound is less like the sent one than the required \(minimumLikeness)")
        }
    }

    /// After a file's end, for what is still on its way: a second, and the jitter buffers at both ends.
    private static let lastSound = Duration.milliseconds(1_200)

    private var keys: KeySequence? { press.flatMap(KeySequence.init) }

    private var usesCard: Bool { device != nil || playback != nil || capture != nil }

    /// Reports a file that cannot be used before the call is placed.
    private func checkFiles() throws(AudioFileError) {
        var played: FileIdentity?
        if let play { played = try AudioFileReader(path: play).identity }
        if let record { try WAVWriter.check(path: record, sparing: [played].compactMap(\.self)) }
    }

    /// Places the call and follows it to its end.
    private func follow(
        _ device: Device, _ user: UserID, _ run: inout CallRun, _ progress: ProgressLines, _ ending: EndRequest,
        _ configuration: DeviceConfiguration, _ scripted: ScriptedCall?
    ) async throws {
        let audio = AudioBehaviour(
            source: usesCard
                ? .card : scripted != nil ? .program : play.map { .file(path: $0, loops: false) } ?? .silence,
            recording: run.recordingPath)
        await scripted?.provide(to: device)
        progress.say("Calling \(callee)")
        let call = await device.call(
            user, audio: audio, timeToLive: CallLimits.timeToLive(seconds: ttl),
            onlineOnly: !wait && configuration.invites.callsOnlineOnly)
        // Waits as long as the process lives; hanging up an ended call does nothing.
        Task {
            await ending.wait()
            await device.hangUp(call)
        }
        try scripted?.start(call, of: device, progress)
        var isPlayed = false
        var pressing: Task<String?, Never>?
        defer { pressing?.cancel() }
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
                let end = duration == nil && play == nil && script == nil ? "; Ctrl-C hangs up" : ""
                progress.say("Established after \(time.milliseconds.rounded(toPlaces: 1)) ms\(end)")
                if let keys, scripted == nil {
                    pressing = Task { await self.press(keys, on: call, of: device, progress) }
                }
                if let duration { hangUpLater(.seconds(duration)) } else if isPlayed { hangUpLater(Self.lastSound) }
            case .flowing(_, let time, _):
                run.setUpTime = time
                progress.say("Media flows both ways after \(time.milliseconds.rounded(toPlaces: 1)) ms")
            case .playbackEnded:
                progress.say("The file has ended")
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
            case .signaling(.reconnecting): progress.warn("The connection is lost; connecting again")
            case .card(let event):
                let text = CardEventText(event: event, audio: configuration.audio)
                if text.isWarning { progress.warn(text.text) } else { progress.say(text.text) }
            case .ended(_, let record, let report):
                run.isInterrupted = ending.isMade
                pressing?.cancel()
                if let reason = await pressing?.value { run.keyError = reason }
                run.ended(record, report, device.sharedMedia.cardStatistics)
                return
            case .transferRequested(_, let target, let isAccepted):
                progress.say("The peer requests a transfer to \(target)" + (isAccepted ? "" : ", refused"))
            case .transferProgress(_, let target, let state):
                progress.say("The transfer to \(target): \(state.rawValue)")
            case .signaling, .identified, .incoming, .invited, .invite, .playing, .playingEnded, .recording,
                .recordingEnded, .roomRecording, .roomRecordingEnded, .voicemail,
                .attached, .detached, .speech, .interrupted, .responded, .handover, .parking, .queued, .leftQueue:
                break
            }
        }
    }

    /// Presses keys, with pauses of a second.
    ///
    /// - Returns: Why they cannot be pressed; nil if they are.
    private func press(
        _ keys: KeySequence, on call: CallID, of device: Device, _ progress: ProgressLines
    ) async -> String? {
        progress.say("Pressing \(keys.text)")
        for part in keys.text.split(separator: ",", omittingEmptySubsequences: false).enumerated() {
            if part.offset > 0 { try? await Task.sleep(for: .seconds(1)) }
            guard !part.element.isEmpty else { continue }
            if Task.isCancelled { return "the call ended before \(part.element) was pressed" }
            do throws(DigitError) {
                try await device.press(String(part.element), on: call)
            } catch {
                progress.warn("Keys cannot be pressed: \(error)")
                return "\(error)"
            }
            // The duration of the keys and the gaps between them: a pause begins after them.
            try? await Task.sleep(for: .milliseconds(180 * part.element.count))
        }
        return nil
    }

    private func deviceConfiguration() throws -> DeviceConfiguration {
        var configuration = try CallerConfiguration(caller, webrtc: webrtc)
            .read(for: callee)
        if usesCard {
            configuration.behaviour.source = .card
            if let name = playback ?? device { configuration.audio.playback = AudioConfiguration.name(name) }
            if let name = capture ?? device { configuration.audio.capture = AudioConfiguration.name(name) }
        }
        return configuration
    }
}
