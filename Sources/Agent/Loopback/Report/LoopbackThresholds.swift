internal import LoopbackAnalysis

/// The thresholds. One that is nil is not checked.
public struct LoopbackThresholds: Equatable, Sendable {
    /// Greatest mean delay, in milliseconds.
    public var delayMilliseconds: Double?
    /// Greatest difference between the least and the greatest delay, in milliseconds.
    public var delayRangeMilliseconds: Double?
    /// Greatest drift, either way, in ppm.
    public var driftPPM: Double?
    /// Most gaps and repeats.
    public var events: Int?
    /// Most milliseconds in gaps and repeats, for each minute.
    public var disturbedMillisecondsPerMinute: Double?
    /// The least likeness of the carrier, 0…1, of nine in ten readings.
    public var likeness: Double?
    /// Least quality of speech, 1…4.64 (MOS-LQO), in the mean.
    public var quality: Double?
    /// Least carrier against noise, in dB.
    public var signalToNoiseDB: Double?
    /// Least level of what was captured against what was played, in dB.
    public var gainDB: Double?
    /// Greatest constant offset, either way, in percent of full scale.
    public var offsetPercent: Double?
    /// Least frequency at which the band may end, in Hz (``FrequencyResponse/edgesHz``).
    public var bandHighHz: Double?
    /// Greatest frequency at which the band may begin, in Hz.
    public var bandLowHz: Double?
    /// Most tones that are not heard.
    public var unheardTones: Int?
    /// Most figures that are withheld or missing.
    public var withheld: Int?
    /// Most faults that no other threshold looks at.
    public var faults: Int?
    /// Greatest THD+N of the tone, in percent.
    public var distortionPercent: Double?
    /// Greatest gain less least from 300 Hz to 3.4 kHz, in dB.
    public var speechRippleDB: Double?
    /// Most samples that were clipped.
    public var clippedSamples: Int?
    /// Greatest crosstalk from one channel to the other, in dB.
    public var crosstalkDB: Double?
    /// Most faults of the channels: swapped, of opposite polarity.
    public var channelFaults: Int?
    /// Fewest channels that sound goes through, out and back in.
    public var channels: Int?

    /// The defaults for `mode`: a cable and a good card; a call with Opus; hours of either.
    public init(_ mode: LoopbackRun.Mode) {
        clippedSamples = 0
        switch mode {
        case .device:
            signalToNoiseDB = 30
            delayMilliseconds = 100
            driftPPM = 200
            events = 0
            likeness = 0.7
            gainDB = -30
            offsetPercent = 0.5
            bandHighHz = 15_000
            bandLowHz = 200
            unheardTones = 0
            withheld = 0
            faults = 0
            distortionPercent = 1
            speechRippleDB = 6
            channelFaults = 0
        case .call:
            signalToNoiseDB = 30
            delayMilliseconds = 150
            delayRangeMilliseconds = 60
            disturbedMillisecondsPerMinute = 200
            likeness = 0.3
            quality = 1.5
        case .soak:
            delayMilliseconds = 150
            delayRangeMilliseconds = 4
            disturbedMillisecondsPerMinute = 20
            likeness = 0.3
        }
    }
}
