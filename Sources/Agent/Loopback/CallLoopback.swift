public import AudioKit
public import LoopbackAnalysis

/// A measurement through a whole call to a device that echoes: the played signal, and the analysis of what returns.
///
/// It is played and recorded by the call itself, which takes both frames at the same moment, so that the number of a
/// recorded sample less that of the played one is the time from hand-over to the call until it comes out of it; or by
/// cards outside the call (``CallCards``).
public struct CallLoopback: Sendable {
    let signal: LoopbackSignal
    private let speech: [Int16]
    /// Played into a call before the signal: a voice with pauses, in which the jitter buffers find their delay.
    private let lead: [Int16]
    private static let leadSeconds = 6.0
    /// How often sweep and tones are played unless asked otherwise.
    public static let usualRounds = 2
    private static let pause = AudioFormat.sampleRate / 2
    /// Shorter speech is repeated, because one or two words are not enough to rate a call.
    private static let leastSpeech = 6 * AudioFormat.sampleRate
    /// Length of the synthetic speech.
    private static let syntheticSeconds = 10.0

    /// - Parameters:
    ///   - carrierSeconds: How long gaps are watched for.
    ///   - rounds: How often sweep and tones are played: what something happens to in one is taken from the next.
    ///   - tonesHz: The tones' frequencies.
    ///   - speech: Played behind the test signal, to be compared with what comes back; nil for ``SyntheticSpeech``.
    public init(
        carrierSeconds: Double, rounds: Int = usualRounds, tonesHz: [Double] = LoopbackSignal.usualTonesHz,
        speech: [Int16]? = nil
    ) {
        signal = LoopbackSignal(carrierSeconds: carrierSeconds, rounds: rounds, tonesHz: tonesHz)
        var leader = SyntheticSpeech(seed: 2)
        lead = leader.samples(seconds: Self.leadSeconds) + [Int16](repeating: 0, count: Self.pause)
        guard let speech, !speech.isEmpty else {
            var speaker = SyntheticSpeech()
            self.speech = speaker.samples(seconds: Self.syntheticSeconds)
            return
        }
        var said = speech
        while said.count < Self.leastSpeech { said += [Int16](repeating: 0, count: Self.pause) + speech }
        self.speech = said
    }

    /// What cards play, in seconds.
    public var seconds: Double { Double(playedSamples) / Double(AudioFormat.sampleRate) }

    /// What the file plays, in seconds: the same after a voice that lets the call settle.
    public var fileSeconds: Double { Double(lead.count + playedSamples) / Double(AudioFormat.sampleRate) }

    /// What cards play, in samples.
    var playedSamples: Int { speechStart + speech.count }

    /// What is played after the signal.
    var following: [Int16] { [Int16](repeating: 0, count: Self.pause) + speech }

    private var speechStart: Int { signal.count + Self.pause }

    /// Writes what is to be played as a WAV file.
    public func write(to path: String) throws(AudioFileError) {
        var writer = try WAVWriter(path: path)
        try writer.append(lead.span)
        try writer.append(signal.samples(0..<signal.count).span)
        try writer.append(following.span)
        try writer.finish()
    }

    /// Measures what a call that played the file has recorded.
    public func run(startedAt: String, recorded: [Int16], path: Path?) -> LoopbackRun {
        // A sample of the file and one of the recording with the same number are of the same moment.
        var run = measure(startedAt: startedAt, recorded: Array(recorded.dropFirst(lead.count)))
        if let path, let delay = run.measurement.timing.meanMilliseconds {
            run.stages = path.stages(ofDelay: delay, ear: .here)
            run.facts += path.mouthToEar(ofDelay: delay, ear: .here)
        }
        return run
    }

    /// Analyses what cards have captured of a call.
    ///
    /// - Parameters:
    ///   - ownMilliseconds: The measuring cards' own delay; nil: as reported by libasound.
    ///   - path: The delays from the call's statistics; nil for a call of another device.
    ///   - ear: Where the measuring cards listen.
    public func run(
        startedAt: String, heard: CallCards.Heard, ownMilliseconds: Double?, path: Path?, ear: Ear
    ) -> LoopbackRun {
        var run = measure(
            startedAt: startedAt, recorded: heard.samples, interruptions: heard.interruptions)
        var timing = run.measurement.timing.aligned(to: heard.alignment, clockRate: heard.clockRate)
        run.facts += heard.facts
        if let own = ownMilliseconds ?? heard.ownMilliseconds, let delay = timing.meanMilliseconds {
            let isShorter = own <= delay
            let source = ownMilliseconds == nil ? "as libasound reports" : "as --own-delay says"
            if isShorter { timing = timing.without(own * Double(AudioFormat.sampleRate) / 1_000) }
            run.facts.append(
                .init(
                    "Measuring cards' own delay",
                    "\((own * 100).rounded() / 100) ms, \(source)"
                        + (isShorter ? "; not in the figures" : ", which is more than was measured: not taken out")))
        }
        run.measurement.timing = timing
        if let delay = timing.meanMilliseconds {
            run.stages = path?.stages(ofDelay: delay, ear: ear) ?? []
            run.facts += path?.mouthToEar(ofDelay: delay, ear: ear) ?? Self.mouthToEar(ofDelay: delay, ear: ear)
        }
        return run
    }

    /// A call's clocks are aligned in steps of 2.5 ms and more, those of its cards gradually: 0.5 ms.
    private static let steadinessSamples = 24.0

    private func measure(
        startedAt: String, recorded: [Int16], interruptions: [Range<Int>] = []
    ) -> LoopbackRun {
        let analyser = LoopbackAnalyser(
            signal, maximumDelay: CallCards.maximumDelay, steadiness: Self.steadinessSamples)
        let measurement = analyser.analyse(
            Array(recorded.prefix(speechStart + AudioFormat.sampleRate)), interruptions: interruptions)
        var run = LoopbackRun(mode: .call, startedAt: startedAt, measurement: measurement)
        if recorded.count > speechStart {
            let heard = Array(recorded[speechStart...])
            run.speech = LikenessAnalysis().compare(sent: speech, received: heard)
            run.quality = SpeechQualityAnalysis().compare(reference: speech, degraded: heard)
        }
        return run
    }
}

extension TimingSummary {
    /// Mean delay in milliseconds.
    fileprivate var meanMilliseconds: Double? { meanDelay.map { $0 * 1_000 / Double(AudioFormat.sampleRate) } }
}
