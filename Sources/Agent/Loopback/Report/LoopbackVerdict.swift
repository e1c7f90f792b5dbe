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

        /// Whether it checks gaps that the machine caused and not the path.
        var isWithheldGaps: Bool { Self.gaps.contains(key) && outcome == .unmeasured && measured == "withheld" }

        private static let gaps: Set<String> = ["events", "disturbed", "baseline_events"]

        /// The same check without a result, if it is a failed check of gaps and `reason` explains them.
        func withholdingGaps(_ reason: String?, _ advice: String?) -> Check {
            guard let reason, Self.gaps.contains(key), outcome == .failed else { return self }
            return Check(
                key: key, name: name, measured: "withheld", limit: limit, outcome: .unmeasured,
                advice: "Withheld: \(reason). \(advice ?? "")")
        }
    }

    /// All checks, in the order of the thresholds.
    public let checks: [Check]

    /// Figures that are withheld.
    public let withheldCount: Int

    /// What is wrong, causes first, and what is no failure but worth a look.
    public let faults: [PathFault]

    /// The whole result in one sentence: the fault, or that there is none, or that the cause is not clear.
    public let sentence: String

    /// Nothing failed, and the test signal came back at all.
    public var isPass: Bool { checks.allSatisfy { $0.outcome != .failed } }

    /// Holds a run against its thresholds.
    public init(_ run: LoopbackRun) {
        let timing = run.measurement.timing
        var checks = [
            Check(
                key: "signal", name: "Test signal came back", measured: timing.isFound ? "yes" : "no",
                limit: "required",
                outcome: timing.isFound ? .passed : .failed,
                advice: timing.isFound ? "" : Self.silence(run.measurement))
        ]
        checks += Self.timingChecks(run) + Self.soundChecks(run)
        checks += run.baseline?.checks(run) ?? []
        // A soak looks for rare gaps of this machine, too.
        let stall = run.mode == .device ? run.trouble?.stall(explaining: timing.eventCount) : nil
        checks = checks.map { $0.withholdingGaps(stall, run.trouble?.advice) }
        let withheldGaps = checks.contains(where: \.isWithheldGaps) ? stall : nil
        withheldCount = run.measurement.withheld.count + (withheldGaps == nil ? 0 : 1)
        if timing.isFound { checks += [Self.withheldCheck(run, checks, withheldGaps)].compactMap(\.self) }
        let failed = Set(checks.lazy.filter { $0.outcome == .failed }.map(\.key))
        let faults = PathDiagnosis(run, failed: failed).faults
        if timing.isFound { checks += [Self.faultCheck(faults, run.thresholds.faults)].compactMap(\.self) }
        self.checks = checks
        self.faults = faults
        sentence = Self.sentence(faults, checks, withheldGaps ?? run.measurement.withheld.first?.reasonText)
    }

    /// Figures that are withheld, or that a threshold asks for and the run lacks.
    private static func withheldCheck(_ run: LoopbackRun, _ checks: [Check], _ stall: String?) -> Check? {
        let withheld = run.measurement.withheld
        let missing = checks.filter { $0.outcome == .unmeasured && $0.measured == Self.notMeasured }
        return most(
            "withheld", "Figures withheld or missing", Double(withheld.count + missing.count + (stall == nil ? 0 : 1)),
            run.thresholds.withheld.map(Double.init), "",
            ([stall].compactMap(\.self).map { "Gaps and repeats are withheld: \($0)." }
                + withheld.map { "\($0.name) is withheld: \($0.reasonText)." }
                + missing.map { "\($0.name) is not measured." }).joined(separator: " ") + " Measure again.")
    }

    private static func faultCheck(_ faults: [PathFault], _ limit: Int?) -> Check? {
        let unchecked = faults.filter(\.isUnchecked)
        return most(
            "faults", "Other faults", Double(unchecked.count), limit.map(Double.init), "",
            unchecked.map { "\($0.text). \($0.advice)" }.joined(separator: " "))
    }

    /// - Parameter reason: Why something is withheld, if anything is.
    private static func sentence(_ faults: [PathFault], _ checks: [Check], _ reason: String?) -> String {
        let failed = checks.filter { $0.outcome == .failed }
        let named = faults.filter(\.isFailure).map(\.text)
        let seen = faults.filter { !$0.isFailure }.map(\.text)
        let noticed = seen.isEmpty ? "" : " Noticed: \(seen.map(Self.inSentence).joined(separator: "; "))."
        guard !failed.isEmpty else { return "No fault found.\(noticed)" }
        if let first = named.first {
            let others = named.dropFirst().map(Self.inSentence)
            return first + (others.isEmpty ? "." : "; also: \(others.joined(separator: "; ")).") + noticed
        }
        let names = failed.map { "\(Self.inSentence($0.name)) (\($0.measured))" }.joined(separator: "; ")
        if failed.allSatisfy({ $0.key == "withheld" }) {
            return "Measured in part only: \(names), because \(reason ?? "the run was short").\(noticed)"
        }
        if failed.allSatisfy({ $0.key.hasPrefix("baseline_") || $0.key == "withheld" }) {
            return "Worse than the baseline, by a cause that is not clear: \(names).\(noticed)"
        }
        return "The cause is not clear: \(names).\(noticed)"
    }

    /// With a small first letter, except of an abbreviation.
    private static func inSentence(_ text: String) -> String {
        guard text.dropFirst().first?.isLowercase == true || text.dropFirst().first == " " else { return text }
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    static let notMeasured = "not measured"

    private static func silence(_ measurement: LoopbackMeasurement) -> String {
        if measurement.channels?.hasOppositePolarity == true { return channelAdvice(measurement.channels) }
        return measurement.levelDBFS < -80
            ? "Nothing was captured. Is the cable in the right sockets, the input not muted, the right card chosen? "
                + "`handset devices` lists them."
            : "Something was captured, but not what was played. Is the microphone near the loudspeaker, and noise "
                + "suppression or echo cancellation off in all that lies between?"
    }

    private static func timingChecks(_ run: LoopbackRun) -> [Check] {
        let (timing, limits) = (run.measurement.timing, run.thresholds)
        let extra = run.trouble?.extraAheadMilliseconds ?? 0
        let range = timing.delayRange.map { AudioText.milliseconds($0.upperBound - $0.lowerBound) }
        let likeness = timing.likeness(quantile: 0.1)
        let minutes = Double(run.measurement.capturedSamples) / Double(60 * AudioFormat.sampleRate)
        // Less than a minute is not extrapolated; of several minutes of a soak the worst counts.
        let mean = AudioFormat.milliseconds(samples: timing.disturbedSamples) / max(1, minutes)
        let worst = run.minutes.map { AudioFormat.milliseconds(samples: $0.disturbedSamples) }.max()
        return [
            most(
                "delay",
                extra > 0
                    ? "Delay, without \(AudioText.number(extra, "ms")) that this busy machine needed ahead" : "Delay",
                timing.meanDelay.map { AudioText.milliseconds($0) - extra }, limits.delayMilliseconds, "ms",
                "Smaller periods and buffers of the card shorten it; so does a shorter frame of the codec."),
            most(
                "delay_range", "Change of delay", range, limits.delayRangeMilliseconds, "ms",
                run.trouble?.advice
                    ?? "A delay that creeps comes from clocks without synchronisation, one that jumps from underruns."),
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
                    ?? "See the list of gaps: lengths of whole frames point to lost packets, others to the card."),
            least(
                "likeness", "Likeness of nine readings in ten", likeness, limits.likeness, "",
                "Noise, echoes of the room, or something between that changes the sound: a codec at a low bitrate, "
                    + "noise suppression."),
            least(
                "speech_quality", "Quality of speech", run.quality?.score, limits.quality, "",
                "Lost packets and gaps cost most, then a codec at a low bitrate and noise; the parts above show which."),
        ].compactMap(\.self)
    }

    private static func soundChecks(_ run: LoopbackRun) -> [Check] {
        let (measured, limits) = (run.measurement, run.thresholds)
        return [
            least(
                "gain", "Gain", measured.timing.gainDB, limits.gainDB, "dB",
                "Turn the output or the input up; look at the mixer of the card and of the sound server."),
            least(
                "signal_to_noise", "Signal against noise", measured.signalToNoiseDB, limits.signalToNoiseDB, "dB",
                "Turn the loudspeaker up or the microphone's boost down; look for hum in the noise's spectrum.",
                withheld: measured.withheld.first { $0.figure == .noise }),
            most(
                "offset", "Constant offset (DC)", measured.evidence.offsetPercent.map(abs), limits.offsetPercent, "%",
                "A converter or an amplifier without a coupling capacitor, or samples of another format.",
                withheld: measured.withheld.first { $0.figure == .noise }),
            distortionCheck(measured, limits.distortionPercent),
            toneCheck(measured, limits.unheardTones),
            least(
                "band", "Upper end of the band (−\(Int(FrequencyResponse.edgeDB)) dB)",
                measured.response?.edgesHz.upperBound, limits.bandHighHz, "Hz",
                bandAdvice(measured.response), withheld: measured.withheld.first(where: \.isResponse)),
            most(
                "band_low", "Lower end of the band (−\(Int(FrequencyResponse.edgeDB)) dB)",
                measured.response?.edgesHz.lowerBound, limits.bandLowHz, "Hz",
                bandAdvice(measured.response), withheld: measured.withheld.first(where: \.isResponse)),
            most(
                "speech_ripple", "Evenness from 300 Hz to 3.4 kHz", measured.response?.speechRippleDB,
                limits.speechRippleDB, "dB", "A filter, an equaliser or a small loudspeaker lies between.",
                withheld: measured.withheld.first(where: \.isResponse)),
            most(
                "clipping", "Clipped samples", Double(measured.clipping.samples),
                limits.clippedSamples.map(Double.init), "", "Turn the input down."),
        ].compactMap(\.self) + channelChecks(measured, limits)
    }

    private static func bandAdvice(_ response: FrequencyResponse?) -> String {
        guard let band = response?.edgesHz else { return "" }
        let rates = [8.0, 11.025, 16, 22.05, 24, 32]
        let rate = rates.first { (0.38 * $0 * 1_000...0.505 * $0 * 1_000).contains(band.upperBound) }
        return "The path carries \(AudioText.frequency(band.lowerBound)) to \(AudioText.frequency(band.upperBound)): "
            + (rate.map { "a sample rate of \(AudioText.number($0)) kHz in between would do that, or a filter." }
                ?? "a filter, a resampler, a small loudspeaker or a microphone of speech does that.")
    }

    /// Tones that did not come through.
    private static func toneCheck(_ measured: LoopbackMeasurement, _ limit: Int?) -> Check? {
        let unheard = measured.unheardTonesHz
        guard let limit, !(measured.tones.isEmpty && unheard.isEmpty) else { return nil }
        let names = unheard.sorted().map { AudioText.frequency($0, isExact: true) }.joined(separator: ", ")
        let isGood = unheard.count <= limit
        return Check(
            key: "tones", name: "Tones not heard",
            measured: unheard.isEmpty ? "0" : "\(unheard.count) of \(unheard.count + measured.tones.count): \(names)",
            limit: "at most \(limit)", outcome: isGood ? .passed : .failed,
            advice: isGood ? "" : "The path does not carry these frequencies, or other sound hides them.")
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
        let worst = measured.worstTone
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
            return Check(
                key: key, name: name, measured: Self.notMeasured, limit: text, outcome: .unmeasured, advice: "")
        }
        let good = isGood(value, limit)
        return Check(
            key: key, name: name, measured: AudioText.number(value, unit), limit: text,
            outcome: good ? .passed : .failed, advice: good ? "" : advice)
    }
}
