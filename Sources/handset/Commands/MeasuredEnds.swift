internal import AudioDevices
internal import AudioKit
internal import CallAgent
internal import Glibc
internal import Loopback
internal import CallMedia
internal import MediaEngine
internal import Realtime
internal import Files
internal import Synchronization
internal import Core

/// The ends of a measured call: the files that it plays and records, or cards that speak to it and listen.
final class MeasuredEnds: Sendable {
    /// Where the test signal is and where what comes back goes to, if the call plays a file.
    let files: SignalFiles?
    private let cards: CallCards?
    private let options: LoopbackCallCardOptions
    private let recordingPath: String?
    private let isOver = Atomic<Bool>(false)

    /// What the measuring cards heard, or why they did not.
    typealias Heard = Result<CallCards.Heard, LoopbackError>

    /// Makes the files, or opens the cards.
    ///
    /// - Parameters:
    ///   - call: The call's own cards; nil of a call between others.
    ///   - played: Files that the recording must not overwrite.
    init(
        _ loopback: CallLoopback, _ options: LoopbackCallCardOptions, call: AudioConfiguration?,
        keepsRecordingAt path: String?, sparing played: [FileIdentity]
    ) throws {
        self.options = options
        recordingPath = path
        guard let measuring = options.measuring(startedAt: MonotonicClock.wallTime.rfc3339) else {
            files = try SignalFiles(loopback, keepsRecordingAt: path, sparing: played)
            cards = nil
            return
        }
        files = nil
        // Reports an unwritable path before the call is placed.
        if let path { try WAVWriter.check(path: path, sparing: played) }
        let own = call.map { call in
            var own = AudioDeviceConfiguration(playback: call.playback, capture: call.capture)
            own.periodMilliseconds = call.periodMilliseconds
            return own
        }
        if let own, own.playback == nil || own.capture == nil {
            throw CommandFailure(
                .configuration,
                "the configuration's `audio` leaves a direction of the call's card out, and both are measured. Name a card "
                    + "with --device.")
        }
        cards = try CallCards(loopback, on: measuring, besides: own)
    }

    /// What the call is to play and record.
    var behaviour: AudioBehaviour {
        guard let files else { return AudioBehaviour(source: .card) }
        return AudioBehaviour(source: .file(path: files.signal, loops: false), recording: files.recording)
    }

    /// Whether cards measure, and not files.
    var hasCards: Bool { cards != nil }

    /// Speaks and listens through the cards, until all has been said or the call has ended.
    ///
    /// - Parameter settleSeconds: How long the call is left alone before that.
    func listen(settleSeconds: Int, _ ending: EndRequest) async -> Heard? {
        guard let cards else { return nil }
        let mustStop: @Sendable () -> Bool = { [self] in isOver.load(ordering: .acquiring) || ending.isMade }
        let end = MonotonicClock.now.advanced(by: .seconds(settleSeconds))
        while MonotonicClock.now < end, !mustStop() { try? await Task.sleep(for: .milliseconds(50)) }
        guard !mustStop() else { return nil }
        let view = LoopbackView()
        view.begin("The mouth speaks and the ear listens: noise, a sweep, a tone, and speech")
        do throws(LoopbackError) {
            let heard = try await cards.measure(
                ownMilliseconds: options.ownMilliseconds, follows: view.isLive, mustStop: mustStop,
                tell: { view.tell(.state($0)) })
            view.end()
            return .success(heard)
        } catch {
            view.end()
            return .failure(error)
        }
    }

    /// Stops listening at the end of the call.
    func stop() { isOver.store(true, ordering: .releasing) }

    /// Measures what came back.
    func run(
        _ loopback: CallLoopback, startedAt: String, heard: Heard?, path: CallLoopback.Path?
    ) throws -> LoopbackRun {
        if let files {
            let recorded = try AudioFileReader.samples(ofFile: files.recording, maximumSamples: Int.max)
            return loopback.run(startedAt: startedAt, recorded: recorded, path: path)
        }
        guard let heard = try heard?.get() else {
            throw CommandFailure(
                .nothingMeasured, "the call ended before anything could be measured; see the log of the called device")
        }
        if let recordingPath {
            var writer = try WAVWriter(path: recordingPath)
            try writer.append(heard.samples.span)
            try writer.finish()
        }
        return loopback.run(
            startedAt: startedAt, heard: heard, ownMilliseconds: options.ownMilliseconds, path: path,
            ear: options.oneWay ? .there : .here)
    }

    /// Removes the files that the user has not asked to keep.
    func remove() { files?.remove() }
}

/// The files at the ends of a measured call.
struct SignalFiles {
    /// The test signal.
    let signal: String
    /// What came back.
    let recording: String
    private let keepsRecording: Bool

    init(
        _ loopback: CallLoopback, keepsRecordingAt path: String?, sparing played: [FileIdentity]
    ) throws(AudioFileError) {
        let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        signal = "\(folder)/handset-loopback-\(getpid()).wav"
        recording = path ?? "\(folder)/handset-loopback-back-\(getpid()).wav"
        keepsRecording = path != nil
        // Reports an unwritable path before the call is placed.
        try WAVWriter.check(path: recording, sparing: played)
        try loopback.write(to: signal)
    }

    func remove() {
        unsafe unlink(signal)
        if !keepsRecording { unsafe unlink(recording) }
    }
}
