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

    /// Figures that are withheld.
    public let withheldCount: Int

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
        checks += run.baseline?.checks(run) ?? []
        self.checks = checks
        withheldCount = run.measurement.withheld.count
    }

    private static func silence(_ measurement: LoopbackMeasurement) -> String {
        if measurement.channels?.hasOppositePolarity == true { return channelAdvice(measurement.channels) }
        return measurement.levelDBFS < -80
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
        // Less than a minute is not extrapolated; of several minutes of a soak the worst counts.
        let mean = AudioFormat.milliseconds(samples: timing.disturbedSamples) / max(1, minutes)
        let worst = run.minutes.map { AudioFormat.milliseconds(samples: $0.disturbedSamples) }.max()
        return [
            most(
                "delay", "Delay", timing.meanDelay.map(AudioText.milliseconds), limits.delayMilliseconds, "ms",
                "Smaller periods and buffers of the card shorten it; so does a shorter frame of the codec."),
            most(
                "delay_range", "Change of delay", range, limits.delayRangeMilliseconds, "ms",
                run.trouble?.advice
                    ?? "A delay that creeps tells of clocks that nobody brings together, one that jumps of underruns."),
            most(
                "drift", "Clocks agree", timing.driftPPM.map { abs($0.value) }, limits.driftPPM, "ppm",
                "More than 100 ppm is a poor crystal, or two cards of which one is not what it says."),
            most(
                "events", "Gaps and repeats", timing.isFound ? Double(timing.eventCount) : nil,
                limits.events.map(Double.init), "",
                run.recurrenceText.map { "They recur \($0)." } ?? run.trouble?.advice
                    ?? "Look for other work on the machine, power saving of USB, or a buffer that is too short; "
                    + "real-time priority helps."),
            most(
                "disturbed", worst == nil ? "Disturbed time in each minute" : "Disturbed time in the worst minute",
                timing.isFound ? worst ?? mean : nil,
                limits.disturbedMillisecondsPerMinute, "ms",
                run.trouble?.advice
                    ?? "See the list of gaps: lengths of whole frames tell of lost packets, others of the card."),
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
                "Turn the loudspeaker up or the microphone's boost down; look for hum in the noise's spectrum.",
                withheld: measured.withheld.first { $0.figure == .noise }),
            distortionCheck(measured, limits.distortionPercent),
            most(
                "speech_ripple", "Evenness from 300 Hz to 3.4 kHz", measured.response?.speechRippleDB,
                limits.speechRippleDB, "dB", "A filter, an equaliser or a small loudspeaker lies between.",
                withheld: measured.withheld.first(where: \.isResponse)),
            most(
                "clipping", "Clipped samples", Double(measured.clipping.samples),
                limits.clippedSamples.map(Double.init), "", "Turn the input down."),
        ].compactMap(\.self) + channelChecks(measured, limits)
    }

    /// A card with one channel has no such check, unless it is requested.
    private static func channelChecks(_ measured: LoopbackMeasurement, _ limits: LoopbackThresholds) -> [Check] {
        let channels = measured.channels
        let withheld = measured.withheld.first { $0.figure == .channels }
        let isKnown = channels != nil || withheld != nil
        // A value hidden by noise may exceed the limit or not.
        let crosstalk = channels?.crosstalk.flatMap { crosstalk in
            crosstalk.isBound && crosstalk.decibels > limits.crosstalkDB ?? 0 ? nil : crosstalk.decibels
        }
        let heard = channels.map { Double($0.heardCount) } ?? (measured.timing.isFound && !isKnown ? 1 : nil)
        return [
            most(
                "channel_faults", "Faults of the channels", channels.map { Double($0.faults.count) },
                isKnown ? limits.channelFaults.map(Double.init) : nil, "", channelAdvice(channels), withheld: withheld),
            most(
                "crosstalk", "Crosstalk", crosstalk, limits.crosstalkDB, "dB",
                "Through the air, and of a card with one channel, left and right are heard alike. Else look at the cable's "
                    + "ground, at a mixer that adds the channels, and at levels that are too low for the noise.",
                withheld: withheld),
            least(
                "channels", "Channels that sound goes through", heard, limits.channels.map(Double.init), "",
                channels.map { "The channels: \($0.verdict)." } ?? "The card has one channel, out or in.",
                withheld: withheld),
        ].compactMap(\.self)
    }

    /// The worst tone against the limit.
    private static func distortionCheck(_ measured: LoopbackMeasurement, _ limit: Double?) -> Check? {
        let worst = measured.tones.max { $0.thdPlusNoisePercent < $1.thdPlusNoisePercent }
        let name =
            measured.tones.count > 1
            ? "THD+N, worst of \(measured.tones.count) tones, at \(AudioText.frequency(worst?.playedHz ?? 0, isExact: true))"
            : "THD+N at \(AudioText.frequency(worst?.playedHz ?? LoopbackSignal.toneHz, isExact: true))"
        return most(
            "distortion", name, worst?.thdPlusNoisePercent, limit, "%",
            "Too loud an output or input is the usual reason; then noise.",
            withheld: measured.withheld.first(where: \.isTone))
    }

    private static func most(
        _ key: String, _ name: String, _ value: Double?, _ limit: Double?, _ unit: String, _ advice: String,
        withheld: Withheld? = nil
    ) -> Check? {
        check(key, name, value, limit, unit, advice, withheld: withheld, word: "at most") { $0 <= $1 }
    }

    private static func least(
        _ key: String, _ name: String, _ value: Double?, _ limit: Double?, _ unit: String, _ advice: String,
        withheld: Withheld? = nil
    ) -> Check? {
        check(key, name, value, limit, unit, advice, withheld: withheld, word: "at least") { $0 >= $1 }
    }

    private static func check(
        _ key: String, _ name: String, _ value: Double?, _ limit: Double?, _ unit: String, _ advice: String,
        withheld: Withheld?, word: String, isGood: (Double, Double) -> Bool
    ) -> Check? {
        guard let limit else { return nil }
        let text = "\(word) \(AudioText.number(limit, unit))"
        guard let value else {
            if let withheld {
                return Check(
                    key: key, name: name, measured: "withheld", limit: text, outcome: .unmeasured,
                    advice: "Withheld: \(withheld.reasonText). Measure again.")
            }
            return Check(key: key, name: name, measured: "not measured", limit: text, outcome: .unmeasured, advice: "")
        }
        let good = isGood(value, limit)
        return Check(
            key: key, name: name, measured: AudioText.number(value, unit), limit: text,
            outcome: good ? .passed : .failed, advice: good ? "" : advice)
    }
}
