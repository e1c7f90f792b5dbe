internal import ArgumentParser
internal import AudioKit
internal import CallAgent
internal import CallControl
internal import Glibc
internal import Logging
internal import Loopback
internal import LoopbackReport
internal import MediaEngine
internal import NIOCore
internal import NIOPosix
internal import OpusCodec
internal import Peering
internal import Playout
internal import Realtime
internal import Timekeeping

/// `handset loopback call`: a whole call to a device that echoes.
struct LoopbackCallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Measure a whole call to a device that echoes: delay by stage, gaps, quality of speech.",
        discussion: """
            No sound card is needed: the test signal is played into the call as a file. Whom is called, and how, is said \
            as for `handset call`. Without --config it is the demo's account "caller" that calls.
            """)

    @Argument(help: "Whom to call: user@host, user@host:port, or a user of the configured server.")
    var callee: String

    @Option(help: "The account's configuration file.")
    var config: String?

    @Option(help: "Base URL of the signaling server, instead of the one that follows from callee or configuration.")
    var server: String?

    @Flag(
        inversion: .prefixedNo, help: "Connect as browsers do, by ICE and DTLS, or with --no-webrtc to a plain address."
    )
    var webrtc: Bool?

    @Option(
        help: """
            A WAV or Ogg Opus file with speech, played behind the test signal and compared with what comes back; without \
            it, synthetic voices.
            """)
    var play: String?

    @Option(help: "Keep what came back in this WAV file.")
    var record: String?

    @Option(help: "Seconds for which delay and gaps are followed, 1…600.")
    var seconds = 10.0

    @Option(help: "How long to let it ring, in seconds.")
    var ttl: Int = 30

    @OptionGroup var report: LoopbackReportOptions
    @OptionGroup var logs: LogOptions

    func validate() throws {
        guard !callee.isEmpty, !callee.hasPrefix("@") else {
            throw ValidationError("\"\(callee)\" names nobody to call. Give user@host, such as echo@localhost.")
        }
        guard (1...600).contains(seconds) else { throw ValidationError("--seconds must be 1…600, not \(seconds).") }
        try report.checkLimits()
    }

    func run() async throws {
        logs.bootstrap()
        let logger = Logger(label: "handset")
        let configuration = try CallerConfiguration(config: config, server: server, webrtc: webrtc).read(for: callee)
        let output = try LoopbackOutput(report, mode: .call)
        let speech = try play.map { try AudioFileReader.samples(ofFile: $0) }
        let loopback = CallLoopback(carrierSeconds: seconds, speech: speech)
        let files = try SignalFiles(loopback, keepsRecordingAt: record)
        defer { files.remove() }
        let startedAt = SystemTime.now().rfc3339
        let ending = EndRequest()
        let (device, group) = try DeviceFactory(configuration: configuration, failsFast: true, logger: logger).make()
        var call = MeasuredCall(callee: callee, files: files, ringSeconds: ttl)

        ProgressLines().say("Logging in at \(configuration.account.eventsURL)")
        do throws(SignalingError) {
            try await device.connect()
        } catch {
            await device.shutDown()
            throw error
        }
        ProgressLines().say("Calling \(callee) for some \(Int(loopback.seconds) + 2) s")
        await call.follow(device, ending)
        await device.shutDown()
        try? await group.shutdownGracefully()

        try call.check()
        ProgressLines().say("Measuring what came back")
        let recorded = try AudioFileReader.samples(ofFile: files.recording, maximumSamples: Int.max)
        var run = loopback.run(
            startedAt: startedAt, recorded: recorded, path: call.media.map { call.path($0, configuration.media) })
        call.describe(&run)
        try output.finish(&run, isInterrupted: ending.isMade)
    }
}

/// The files between which a measured call stands.
struct SignalFiles {
    /// The test signal.
    let signal: String
    /// What came back.
    let recording: String
    private let keepsRecording: Bool

    init(_ loopback: CallLoopback, keepsRecordingAt path: String?) throws(AudioFileError) {
        let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        signal = "\(folder)/handset-loopback-\(getpid()).wav"
        recording = path ?? "\(folder)/handset-loopback-back-\(getpid()).wav"
        keepsRecording = path != nil
        // A place that cannot be written to is told of before anybody is called.
        var writer = try WAVWriter(path: recording)
        try writer.finish()
        try loopback.write(to: signal)
    }

    func remove() {
        unsafe unlink(signal)
        if !keepsRecording { unsafe unlink(recording) }
    }
}

/// The call of a measurement: what it went through, and what its statistics tell.
struct MeasuredCall {
    let callee: String
    let files: SignalFiles
    let ringSeconds: Int
    private(set) var media: MediaReport?
    private var setUpTime: Duration?
    private var record: CallRecord?
    private var fileError: AudioFileError?

    init(callee: String, files: SignalFiles, ringSeconds: Int) {
        self.callee = callee
        self.files = files
        self.ringSeconds = ringSeconds
    }

    /// Places the call and follows it to its end, which comes when the signal has been played.
    mutating func follow(_ device: Device, _ ending: EndRequest) async {
        let progress = ProgressLines()
        let audio = AudioBehaviour(source: .file(path: files.signal, loops: false), recording: files.recording)
        let call = await device.call(UserID(callee), audio: audio, timeToLive: .seconds(ringSeconds))
        // Waits as long as the process lives; to hang up a call that is over does nothing.
        Task {
            await ending.wait()
            await device.hangUp(call)
        }
        for await event in device.events {
            switch event {
            case .answered: progress.say("Answered")
            case .established(_, let time):
                setUpTime = time
                progress.say("Media flows both ways after \(time.milliseconds.rounded(toPlaces: 1)) ms; measuring")
            case .playbackEnded:
                // What is still on its way is to be heard.
                Task {
                    try? await Task.sleep(for: .milliseconds(1_200))
                    await device.hangUp(call)
                }
            case .fileFailed(_, let error):
                progress.warn("\(error)")
                fileError = error
            case .sendingStopped(_, let reason): progress.warn("The call sends no more: \(reason.rawValue)")
            case .sendingResumed: progress.say("The call sends again")
            case .signaling(.reconnecting): progress.warn("The connection is lost; connecting anew")
            case .ended(_, let record, let report):
                self.record = record
                media = report
                return
            case .signaling, .incoming, .invited, .invite, .digit, .card, .realtimePriorityRefused: break
            }
        }
    }

    /// Whether there is anything to measure.
    func check() throws {
        if let fileError { throw fileError }
        let reason = record?.reason ?? .internalError
        guard setUpTime == nil else { return }
        let status: ExitStatus =
            switch reason {
            case .declined, .busy, .noAnswer: .callNotAnswered
            default: .failed
            }
        let error = record?.error.map { " (\($0))" } ?? ""
        throw CommandFailure(
            status,
            "the call to \(callee) was not connected: \(reason.rawValue)\(error). Call a device that echoes, such as "
                + "`handset run` with `behaviour: source: echo`")
    }

    /// Where the call's delay comes from, as its statistics tell.
    func path(_ media: MediaReport, _ configuration: MediaConfiguration) -> CallLoopback.Path {
        let roundTrip = media.peer.roundTripNanoseconds
        return CallLoopback.Path(
            networkMilliseconds: roundTrip > 0 ? Double(roundTrip) / 1e6 : nil,
            jitterBufferMilliseconds: Double(media.playout.meanBufferDelayNanoseconds) / 1e6,
            codecMilliseconds: Double(media.encoderDelaySamples + media.decoderDelaySamples) / 48,
            frameMilliseconds: Double(configuration.encoder.frameDuration.rawValue))
    }

    /// Puts what the call tells of itself into the report.
    func describe(_ run: inout LoopbackRun) {
        var facts = [LoopbackRun.Fact("Called", callee)]
        facts.append(.init("Ended", record?.reason.rawValue ?? "unknown"))
        if let setUpTime { facts.append(.init("Set-up", "\(setUpTime.milliseconds.rounded(toPlaces: 1)) ms")) }
        if let media {
            let (peer, playout) = (media.peer, media.playout)
            facts.append(
                .init(
                    "Packets",
                    "\(peer.packetsSent) sent, \(peer.packetsReceived) received, \(playout.packetsLost) lost, "
                        + "\(playout.packetsLate) late"))
            let concealed = AudioFormat.milliseconds(samples: playout.samplesConcealed)
            facts.append(.init("Concealed", "\(concealed.rounded(toPlaces: 1)) ms"))
            if media.playUnderrunSamples > 0 {
                facts.append(.init("Samples played late", "\(media.playUnderrunSamples)"))
            }
        }
        run.facts = facts + run.facts
    }
}
