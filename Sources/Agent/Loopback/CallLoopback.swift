public import AudioKit
internal import LoopbackAnalysis
public import LoopbackReport

/// A measurement through a whole call to a device that echoes: what is played into the call, and what the recording of
/// the call tells.
///
/// Playing and recording take their frames at the same moment, so the number of a recorded sample less that of the played
/// one is the time from hand-over to the call until it comes out of it.
public struct CallLoopback: Sendable {
    /// What the call's statistics tell of its delay.
    public struct Path: Equatable, Sendable {
        /// Round trip of the network by RTCP, in milliseconds; nil if none was measured.
        public var networkMilliseconds: Double?
        /// Mean delay of our jitter buffer, in milliseconds.
        public var jitterBufferMilliseconds: Double
        /// Look-ahead of the codec, in milliseconds, each way.
        public var codecMilliseconds: Double
        /// Length of a packet's frame, in milliseconds.
        public var frameMilliseconds: Double

        /// Says where a call's delay comes from.
        public init(
            networkMilliseconds: Double?, jitterBufferMilliseconds: Double, codecMilliseconds: Double,
            frameMilliseconds: Double
        ) {
            self.networkMilliseconds = networkMilliseconds
            self.jitterBufferMilliseconds = jitterBufferMilliseconds
            self.codecMilliseconds = codecMilliseconds
            self.frameMilliseconds = frameMilliseconds
        }
    }

    private let signal: LoopbackSignal
    private let speech: [Int16]
    private static let pause = AudioFormat.sampleRate / 2
    /// Speech that is shorter is said again: of a word or two nobody can tell how good a call is.
    private static let leastSpeech = 6 * AudioFormat.sampleRate
    /// How long the voices talk that nobody has.
    private static let syntheticSeconds = 10.0

    /// - Parameters:
    ///   - carrierSeconds: How long gaps are watched for.
    ///   - speech: Played behind the test signal, to be compared with what comes back; nil for ``SyntheticSpeech``.
    public init(carrierSeconds: Double, speech: [Int16]? = nil) {
        signal = LoopbackSignal(carrierSeconds: carrierSeconds)
        guard let speech, !speech.isEmpty else {
            var speaker = SyntheticSpeech()
            self.speech = speaker.samples(seconds: Self.syntheticSeconds)
            return
        }
        var said = speech
        while said.count < Self.leastSpeech { said += [Int16](repeating: 0, count: Self.pause) + speech }
        self.speech = said
    }

    /// What is played, in seconds.
    public var seconds: Double { Double(speechStart + speech.count) / Double(AudioFormat.sampleRate) }

    private var speechStart: Int { signal.count + Self.pause }

    /// Writes what is to be played as a WAV file.
    public func write(to path: String) throws(AudioFileError) {
        var writer = try WAVWriter(path: path)
        try writer.append(signal.samples(0..<signal.count).span)
        try writer.append([Int16](repeating: 0, count: Self.pause).span)
        try writer.append(speech.span)
        try writer.finish()
    }

    /// Measures what was recorded.
    public func run(startedAt: String, recorded: [Int16], path: Path?) -> LoopbackRun {
        let analyser = LoopbackAnalyser(signal, maximumDelay: 3 * AudioFormat.sampleRate)
        let measurement = analyser.analyse(Array(recorded.prefix(speechStart + AudioFormat.sampleRate)))
        var run = LoopbackRun(mode: .call, startedAt: startedAt, measurement: measurement)
        if recorded.count > speechStart {
            let heard = Array(recorded[speechStart...])
            run.speech = LikenessAnalysis().compare(sent: speech, received: heard)
            run.quality = SpeechQualityAnalysis().compare(reference: speech, degraded: heard)
        }
        if let path, let delay = measurement.timing.meanDelay {
            let milliseconds = delay * 1_000 / Double(AudioFormat.sampleRate)
            run.stages = Self.stages(path, roundTrip: milliseconds)
            let mouthToEar = milliseconds / 2 + path.frameMilliseconds
            run.facts.append(
                .init(
                    "Mouth to ear",
                    "\((mouthToEar * 10).rounded() / 10) ms without sound cards: half of the round trip, and "
                        + "\(Int(path.frameMilliseconds)) ms to fill a frame"))
        }
        return run
    }

    private static func stages(_ path: Path, roundTrip: Double) -> [LoopbackRun.Stage] {
        let known = [
            LoopbackRun.Stage("Look-ahead of the codec, both ways", milliseconds: 2 * path.codecMilliseconds),
            LoopbackRun.Stage("Network, there and back", milliseconds: path.networkMilliseconds ?? 0),
            LoopbackRun.Stage("Jitter buffer here", milliseconds: path.jitterBufferMilliseconds),
        ].filter { $0.milliseconds > 0 }
        let rest = roundTrip - known.reduce(0) { $0 + $1.milliseconds }
        guard rest > 0 else { return known }
        let other = "The other side: its jitter buffer, and waiting for the next frame at both ends"
        return known + [LoopbackRun.Stage(other, milliseconds: rest)]
    }
}
