internal import AudioKit
internal import LoopbackAnalysis
internal import Loopback

/// A measurement in some ten lines: what was found, each check, and what to try.
struct LoopbackSummary {
    private let run: LoopbackRun
    private let style: TerminalStyle

    init(_ run: LoopbackRun, _ style: TerminalStyle) {
        self.run = run
        self.style = style
    }

    private static func milliseconds(_ samples: Double) -> String {
        "\((samples * 1_000 / Double(AudioFormat.sampleRate)).rounded(toPlaces: 2)) ms"
    }

    var text: String {
        let timing = run.measurement.timing
        let verdict = LoopbackVerdict(run)
        var lines = [verdict.isPass ? style.green(verdict.sentence) : style.red(verdict.sentence)]
        func add(_ label: String, _ value: String?) {
            if let value { lines.append("  " + label.padded(to: max(27, label.count + 2)) + value) }
        }
        if let delay = timing.meanDelay, let range = timing.delayRange {
            add(
                "delay",
                "\(style.bold(Self.milliseconds(delay)))  (\(Self.milliseconds(range.lowerBound)) … "
                    + "\(Self.milliseconds(range.upperBound)))")
            for stage in run.stages {
                add("", "\("\(stage.milliseconds.rounded(toPlaces: 2)) ms".padded(to: 10))  \(stage.name)")
            }
        }
        add("they recur", run.recurrenceText)
        for change in run.measurement.unseenChanges {
            add("delay changed", "\(change.text), while no carrier was played: the mean covers both")
        }
        add("drift", timing.driftPPM.map { "\($0.value.rounded(toPlaces: 2)) ± \($0.error.rounded(toPlaces: 2)) ppm" })
        if timing.isFound { add("gaps and repeats", gaps(timing)) }
        sound(add)
        add("Measured by", run.origin?.text)
        for fact in run.facts { add(fact.label, fact.value) }
        for file in run.momentFiles { add("worst moment", file) }
        for check in verdict.checks { lines.append(line(check)) }
        let isFound = timing.isFound
        lines.append(
            verdict.isPass
                ? style.green(
                    verdict.withheldCount == 0
                        ? "Within its thresholds."
                        : "Within its thresholds; \(verdict.withheldCount) figures are withheld, and were not looked at."
                )
                : style.red(isFound ? "Not within its thresholds." : "The test signal did not come back."))
        return lines.joined(separator: "\n")
    }

    private func gaps(_ timing: TimingSummary) -> String {
        guard timing.eventCount > 0 else { return "none" }
        let longest = timing.events.map(\.lengthMilliseconds).max() ?? 0
        let kinds = LoopbackEvent.Kind.allCases.compactMap { kind in
            timing.counts[kind].map { "\($0) \(kind.rawValue)" }
        }
        return "\(timing.eventCount) (\(kinds.joined(separator: ", "))), the longest \(longest.rounded(toPlaces: 2)) ms"
    }

    private func sound(_ add: (String, String?) -> Void) {
        let measured = run.measurement
        add(
            "gain",
            measured.timing.gainDB.map {
                "\($0.rounded(toPlaces: 1)) dB, peak \(measured.peakDBFS.rounded(toPlaces: 1)) dBFS"
            })
        add("noise floor", measured.noise.map { "\($0.levelDBFS.rounded(toPlaces: 1)) dBFS" })
        for (index, tone) in measured.tones.sorted(by: { $0.playedHz < $1.playedHz }).enumerated() {
            let label = index == 0 ? "THD+N" : ""
            add(label, "\(tone.thdPlusNoisePercent.rounded(toPlaces: 3)) % at \(Int(tone.playedHz)) Hz")
        }
        if !measured.unheardTonesHz.isEmpty {
            add("tones not heard", measured.unheardTonesHz.map { "\(Int($0)) Hz" }.joined(separator: ", "))
        }
        add(
            "band (−10 dB)",
            measured.response.map {
                "\(Int($0.edgesHz.lowerBound.rounded())) … \(Int($0.edgesHz.upperBound.rounded())) Hz"
            })
        add(
            "band (−3 dB)",
            measured.response.map {
                "\(Int($0.bandHz.lowerBound.rounded())) … \(Int($0.bandHz.upperBound.rounded())) Hz"
            })
        for (index, line) in (measured.channels?.lines ?? []).enumerated() {
            add(index == 0 ? "channels" : "", "\(line.label): \(line.text)")
        }
        for withheld in measured.withheld { add("withheld", "\(withheld.name): \(withheld.reasonText)") }
        add("likeness", measured.timing.likeness(quantile: 0.5).map { "\($0.rounded(toPlaces: 3)) of the carrier" })
        add("", run.speech.map { "\($0.likeness.rounded(toPlaces: 3)) of speech" })
        add("quality of speech", run.quality.map(Self.quality))
    }

    /// How good speech sounded, in a line.
    static func quality(_ quality: SpeechQuality) -> String {
        let worst = quality.pieces > 1 ? ", at worst \(quality.worstScore.rounded(toPlaces: 2))" : ""
        return "\(quality.score.rounded(toPlaces: 2)) of 4.64, \(quality.word)\(worst) (estimate of MOS-LQO)"
    }

    private func line(_ check: LoopbackVerdict.Check) -> String {
        let text = check.sentence
        switch check.outcome {
        case .passed: return "  \(style.green("✓")) \(text)"
        case .unmeasured:
            return "  \(style.dim("–")) \(style.dim(text))" + (check.advice.isEmpty ? "" : "\n      \(check.advice)")
        case .failed:
            return "  \(style.red("✗")) \(text)" + (check.advice.isEmpty ? "" : "\n      \(check.advice)")
        }
    }

    /// A minute of a soak, in one line.
    static func line(_ minute: SoakMonitor.Minute) -> String {
        let number = "minute \(minute.number + 1)".padded(to: 11)
        guard let delay = minute.delay else {
            return "\(number) not heard, level \(minute.levelDBFS.rounded(toPlaces: 1)) dBFS"
        }
        let drift = minute.driftPPM.map { "\($0.rounded(toPlaces: 1)) ppm" } ?? "–"
        let disturbed = AudioFormat.milliseconds(samples: minute.disturbedSamples).rounded(toPlaces: 1)
        return
            "\(number) delay \(milliseconds(delay.mean)) (\(milliseconds(delay.least)) … \(milliseconds(delay.greatest)))"
            + ", drift \(drift), gaps \(minute.events) (\(disturbed) ms), level \(minute.levelDBFS.rounded(toPlaces: 1)) dBFS"
    }
}
