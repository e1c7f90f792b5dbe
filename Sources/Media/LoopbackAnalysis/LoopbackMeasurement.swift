/// All results of one measurement.
public struct LoopbackMeasurement: Equatable, Sendable {
    /// Delay, drift, gaps and repeats.
    public var timing: TimingSummary
    /// Samples captured.
    public var capturedSamples: Int
    /// Level of all that was captured, in dBFS: its root of the mean square and its peak.
    public var levelDBFS: Double
    /// Level of the loudest sample, in dBFS.
    public var peakDBFS: Double
    /// Samples that did not fit.
    public var clipping: ClippingCounter
    /// The noise while nothing is played; nil if the capture was too short.
    public var noise: NoiseFloor?
    /// From the sweep; nil in a soak, if the delay is not known, and if it is withheld.
    public var response: FrequencyResponse?
    /// From the tones that came through; none in a soak, and without those that are withheld.
    public var tones: [ToneAnalysis] = []
    /// Frequencies of tones that did not come through although nothing happened to them, in Hz.
    public var unheardTonesHz: [Double] = []
    /// What faults of the path are named by.
    public var evidence = PathEvidence()
    /// The tone of 997 Hz.
    public var tone: ToneAnalysis? { tones.first { $0.playedHz == LoopbackSignal.toneHz } }
    /// Figures of each channel; nil for a card with one channel, and if channels were not analysed.
    public var channels: ChannelFigures?
    /// Figures that cannot be trusted, and are not given.
    public var withheld: [Withheld] = []
    /// Changes of the delay while no carrier was played, beyond what drift makes.
    public var unseenChanges: [DelayChange] = []
    /// How much the delay had changed at the end against what the drift alone makes, in samples.
    public var delayChangeAtEnd: Double?

    /// Level of the carrier relative to the noise floor, in dB.
    public var signalToNoiseDB: Double? {
        guard let noise, let gain = timing.gainDB, let carrierDBFS else { return nil }
        return carrierDBFS + gain - noise.levelDBFS
    }
    /// Level at which the carrier was played.
    public var carrierDBFS: Double?

    /// A measurement with nothing but these.
    public init(
        timing: TimingSummary, capturedSamples: Int, levelDBFS: Double, peakDBFS: Double, clipping: ClippingCounter
    ) {
        self.timing = timing
        self.capturedSamples = capturedSamples
        self.levelDBFS = levelDBFS
        self.peakDBFS = peakDBFS
        self.clipping = clipping
    }
}

extension LoopbackMeasurement {
    /// Takes the figures that are withheld from a later measurement of the same path, as far as it has them.
    ///
    /// Delay, drift, gaps and level remain those of this one.
    public mutating func fill(from later: LoopbackMeasurement) {
        guard later.timing.isFound else { return }
        var rest: [Withheld] = []
        for one in withheld {
            let isKnown = !later.withheld.contains { $0.figure == one.figure } && take(one.figure, later)
            if !isKnown { rest.append(one) }
        }
        withheld = rest
    }

    private mutating func take(_ figure: Withheld.Figure, _ later: LoopbackMeasurement) -> Bool {
        switch figure {
        case .noise:
            guard let noise = later.noise else { return false }
            self.noise = noise
            evidence.hum = later.evidence.hum
            evidence.offsetPercent = later.evidence.offsetPercent
        case .response:
            guard let response = later.response else { return false }
            self.response = response
            evidence.level?.againstSweepDB = timing.gainDB.map { $0 - response.carrierGainDB }
        case .tone(let frequency):
            if let tone = later.tones.first(where: { $0.playedHz == frequency }) {
                tones.append(tone)
            } else if later.unheardTonesHz.contains(frequency) {
                unheardTonesHz.append(frequency)
            } else {
                return false
            }
        case .channels:
            guard let channels = later.channels else { return false }
            self.channels = channels
        }
        return true
    }
}
