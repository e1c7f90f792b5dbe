internal import AudioKit
internal import LoopbackAnalysis

/// Whether a run was good enough, and why not.
public struct LoopbackVerdict: Equatable, Sendable {
    /// How a check went.
    public enum Outcome: String, Sendable {
        case passed, failed
        /// There was nothing to hold against the threshold.
        case unmeasured
    }

    /// One threshold held against what was measured.
    public struct Check: Equatable, Sendable {
        /// A short name that stays the same between versions, for programs.
        public let key: String
        /// What is checked, for a person.
        public let name: String
        /// What was measured, with its unit.
        public let measured: String
        /// What was allowed.
        public let limit: String
        /// How it went.
        public let outcome: Outcome
        /// What a failure may come from, and what to try; empty of one that passed.
        public let advice: String
    }

    /// All checks, in the order of the thresholds.
    public let checks: [Check]

    /// Nothing failed, and the test signal came back at all.
    public var isPass: Bool { checks.allSatisfy { $0.outcome != .failed } }

    /// Holds a run against its thresholds.
    public init(_ run: LoopbackRun) {
        let timing = run.measurement.timing
        var checks = [
            Check(
                key: "signal", name: "Test signal came back", measured: timing.isFound ? "yes" : "no", limit: "yes",
                outcome: timing.isFound ? .passed : .failed,
                advice: timing.isFound ? "" : Self.silence(run.measurement))
        ]
        checks += Self.timingChecks(run) + Self.soundChecks(run)
        self.checks = checks
    }

    private static func silence(_ measurement: LoopbackMeasurement) -> String {
        measurement.levelDBFS < -80
            ? "Nothing was captured. Is the cable in the right sockets, the input not muted, the right card chosen? "
                + "`handset devices` lists them."
            : "Something was captured, but not what was played. Is the microphone near the loudspeaker, and noise "
                + "suppression or echo cancellation off in whatever lies between?"
    }

    private static func timingChecks(_ run: LoopbackRun) -> [Check] {
        let (timing, limits) = (run.measurement.timing, run.thresholds)
        let range = timing.delayRange.map { AudioText.milliseconds($0.upperBound - $0.lowerBound) }
        let likeness = timing.likeness(quantile: 0.1)
        let minutes = Double(run.measurement.capturedSamples) / Double(60 * AudioFormat.sampleRate)
        let disturbed = AudioFormat.milliseconds(samples: timing.disturbedSamples) / max(1.0 / 60, minutes)
        return [
            most(
                "delay", "Delay", timing.meanDelay.map(AudioText.milliseconds), limits.delayMilliseconds, "ms",
                "Smaller periods and buffers of the card shorten it; so does a shorter frame of the codec."),
            most(
                "delay_range", "Delay stays the same", range, limits.delayRangeMilliseconds, "ms",
                "A delay that creeps tells of clocks that nobody brings together, one that jumps of underruns."),
            most(
                "drift", "Clocks agree", timing.driftPPM.map { abs($0.value) }, limits.driftPPM, "ppm",
                "More than 100 ppm is a poor crystal, or two cards of which one is not what it says."),
            most(
                "events", "Gaps and repeats", timing.isFound ? Double(timing.eventCount) : nil,
                limits.events.map(Double.init), "",
                "Look for other work on the machine, power saving of USB, or a buffer that is too short; "
                    + "real-time priority helps."),
            most(
                "disturbed", "Disturbed time in each minute", timing.isFound ? disturbed : nil,
                limits.disturbedMillisecondsPerMinute, "ms",
                "See the list of gaps: lengths of whole frames tell of lost packets, others of the card."),
            least(
                "likeness", "Likeness of nine readings in ten", likeness, limits.likeness, "",
                "Noise, echoes of the room, or something between that changes the sound: a codec at a low bitrate, "
                    + "noise suppression."),
            least(
                "speech_quality", "Quality of speech", run.quality?.score, limits.quality, "",
                "Lost packets and gaps cost most, then a codec at a low bitrate and noise; the parts above tell which."),
        ].compactMap(\.self)
    }

    private static func soundChecks(_ run: LoopbackRun) -> [Check] {
        let (measured, limits) = (run.measurement, run.thresholds)
        return [
            least(
                "signal_to_noise", "Signal against noise", measured.signalToNoiseDB, limits.signalToNoiseDB, "dB",
                "Turn the loudspeaker up or the microphone's boost down; look for hum in the noise's spectrum."),
            most(
                "distortion", "THD+N at 997 Hz", measured.tone?.thdPlusNoisePercent, limits.distortionPercent, "%",
                "Too loud an output or input is the usual reason; then noise."),
            most(
                "speech_ripple", "Evenness from 300 Hz to 3.4 kHz", measured.response?.speechRippleDB,
                limits.speechRippleDB, "dB", "A filter, an equaliser or a small loudspeaker lies between."),
            most(
                "clipping", "Clipped samples", Double(measured.clipping.samples),
                limits.clippedSamples.map(Double.init), "", "Turn the input down."),
        ].compactMap(\.self)
    }

    private static func most(
        _ key: String, _ name: String, _ value: Double?, _ limit: Double?, _ unit: String, _ advice: String
    ) -> Check? {
        check(key, name, value, limit, unit, advice, word: "at most") { $0 <= $1 }
    }

    private static func least(
        _ key: String, _ name: String, _ value: Double?, _ limit: Double?, _ unit: String, _ advice: String
    ) -> Check? {
        check(key, name, value, limit, unit, advice, word: "at least") { $0 >= $1 }
    }

    private static func check(
        _ key: String, _ name: String, _ value: Double?, _ limit: Double?, _ unit: String, _ advice: String,
        word: String, isGood: (Double, Double) -> Bool
    ) -> Check? {
        guard let limit else { return nil }
        let text = "\(word) \(AudioText.number(limit, unit))"
        guard let value else {
            return Check(key: key, name: name, measured: "not measured", limit: text, outcome: .unmeasured, advice: "")
        }
        let good = isGood(value, limit)
        return Check(
            key: key, name: name, measured: AudioText.number(value, unit), limit: text,
            outcome: good ? .passed : .failed, advice: good ? "" : advice)
    }
}
