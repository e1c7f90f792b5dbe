internal import AudioKit
internal import LoopbackAnalysis

/// The report for a person: one page that needs nothing else, neither network nor scripts.
public struct LoopbackHTML: Sendable {
    let run: LoopbackRun
    private let verdict: LoopbackVerdict

    /// Makes the page of a run.
    public init(_ run: LoopbackRun) {
        self.run = run
        verdict = LoopbackVerdict(run)
    }

    var timing: TimingSummary { run.measurement.timing }

    /// The page.
    public var text: String {
        let title = "\(heading), \(run.startedAt)"
        let body = [
            header, tiles, checks, withheldFigures, stages, delayPlot, pair(responsePlot, noisePlot),
            pair(distortionPlot, levelPlot), pair(histogram, driftPlot), tones, channels, events, minutes, facts,
            footer,
        ]
        return HTMLPage(title: title, body: body).text
    }

    private var heading: String {
        switch run.mode {
        case .device: "Loopback of a sound card"
        case .call: "Loopback through a call"
        case .soak: "Soak"
        }
    }

    private var header: String {
        let seconds = Double(run.measurement.capturedSamples) / Double(AudioFormat.sampleRate)
        return HTMLPage.header(
            heading, startedAt: run.startedAt, origin: run.origin, length: "\(AudioText.time(seconds)) captured",
            checks: verdict.checks, withheldCount: verdict.withheldCount)
            + "\n<p class=\"verdict\">\(HTMLText.escaped(verdict.sentence))</p>"
    }

    private func tile(_ name: String, _ value: String?, _ note: String) -> String { HTMLPage.tile(name, value, note) }

    /// A tile has room for two places.
    private static func partsPerMillion(_ value: Double) -> String {
        abs(value) < 0.095 ? AudioText.fixed(value, 2) + "\u{202F}ppm" : AudioText.number(value, "ppm")
    }

    private var tiles: String {
        let range = timing.delayRange.map {
            "\(AudioText.number(AudioText.milliseconds($0.lowerBound))) … "
                + AudioText.number(AudioText.milliseconds($0.upperBound), "ms")
        }
        let drift = timing.driftPPM
        let gaps = timing.eventCount
        var made = [
            tile(
                "Delay", timing.meanDelay.map { AudioText.number(AudioText.milliseconds($0), "ms") },
                range ?? "not found"),
            tile(
                "Drift", drift.map { Self.partsPerMillion($0.value) },
                drift.map { "± \(Self.partsPerMillion($0.error))" } ?? "too short to measure"),
            tile(
                "Gaps and repeats", timing.isFound ? "\(gaps)" : nil,
                gaps == 0
                    ? "every sample in its place"
                    : AudioText.number(AudioFormat.milliseconds(samples: timing.disturbedSamples), "ms") + " in all"),
        ]
        // A soak has no silence in which to measure noise.
        if run.mode != .soak {
            made.append(
                tile(
                    "Signal to noise", run.measurement.signalToNoiseDB.map { AudioText.number($0, "dB") },
                    run.measurement.noise.map { "floor \(AudioText.number($0.levelDBFS.rounded(), "dBFS"))" }
                        ?? "no silence heard"))
        }
        made += toneTiles
        if let withheld = run.measurement.withheld.first(where: \.isResponse) {
            made.append(tile("Band (−3 dB)", nil, "withheld: \(withheld.reasonText)"))
        }
        if let response = run.measurement.response {
            made.append(
                tile(
                    "Band (−3 dB)", AudioText.frequency(response.bandHz.upperBound),
                    "from \(AudioText.frequency(response.bandHz.lowerBound)); −10 dB at "
                        + "\(AudioText.frequency(response.edgesHz.lowerBound)) and "
                        + AudioText.frequency(response.edgesHz.upperBound)))
        }
        made.append(
            tile(
                "Likeness", (run.speech?.likeness ?? timing.likeness(quantile: 0.5)).map { AudioText.fixed($0, 2) },
                run.speech == nil ? "of the carrier, 0 to 1" : "of speech, 0 to 1"))
        if let quality = run.quality {
            made.append(
                tile(
                    "Quality of speech", AudioText.fixed(quality.score, 2),
                    "\(quality.word); MOS-LQO, 1 to 4.64"
                        + (quality.pieces > 1 ? ", at worst \(AudioText.fixed(quality.worstScore, 2))" : "")))
        }
        return HTMLPage.tiles(made)
    }

    /// A row for the standard tone, or for the first one, and for withheld ones.
    private var toneTiles: [String] {
        let measured = run.measurement
        if let tone = measured.tones.max(by: { $0.thdPlusNoisePercent < $1.thdPlusNoisePercent }) {
            return [
                tile(
                    measured.tones.count > 1 ? "THD+N, worst tone" : "THD+N",
                    AudioText.number(tone.thdPlusNoisePercent, "%"),
                    "\(AudioText.number(tone.thdPlusNoiseDB, "dB")) at \(AudioText.frequency(tone.playedHz, isExact: true))"
                )
            ]
        }
        guard let withheld = measured.withheld.first(where: \.isTone) else { return [] }
        return [tile("THD+N", nil, "withheld: \(withheld.reasonText)")]
    }

    /// Figures that are not given, and unobserved changes.
    private var withheldFigures: String {
        let measured = run.measurement
        guard !measured.withheld.isEmpty || !measured.unseenChanges.isEmpty else { return "" }
        let rows =
            measured.withheld.map { [$0.name, "withheld: \($0.reasonText)"] }
            + measured.unseenChanges.map {
                ["Delay", "changed \($0.text), while no carrier was played: the mean covers both"]
            }
        return section(
            "Not to be trusted", "Something happened while these were measured. Measure again.",
            HTMLText.table("Figures that are withheld or marked", ["Figure", "Why"], rows))
    }

    private var tones: String {
        guard run.measurement.tones.count + run.measurement.unheardTonesHz.count > 1 else { return "" }
        let rows =
            run.measurement.tones.sorted { $0.playedHz < $1.playedHz }.map { tone in
                [
                    AudioText.frequency(tone.playedHz, isExact: true), AudioText.number(tone.levelDBFS, "dBFS"),
                    AudioText.number(tone.thdPercent, "%"), AudioText.number(tone.thdPlusNoisePercent, "%"),
                ]
            } + run.measurement.unheardTonesHz.map { [AudioText.frequency($0, isExact: true), "not heard", "–", "–"] }
        return section(
            "Tones", "Distortion, and all that is not the tone.",
            HTMLText.table("Tones one by one", ["Tone", "Level", "THD", "THD+N"], rows))
    }

    private var channels: String {
        guard let figures = run.measurement.channels else { return "" }
        return section(
            "Channels", "Each channel played alone: how loud it is heard on which, against what was played.",
            HTMLText.table(
                "Channels one by one", ["Played → heard", "Level"], figures.lines.map { [$0.label, $0.text] }))
    }

    private var checks: String { HTMLPage.checks(verdict.checks) }

    private var stages: String { HTMLPage.stages("Where the delay comes from", run.stages) }

    func section(_ title: String, _ note: String, _ content: String) -> String {
        HTMLPage.section(title, note, content)
    }

    /// Two plots beside each other, or a single one at the whole width.
    private func pair(_ first: (Plot.Size) -> String, _ second: (Plot.Size) -> String) -> String {
        if first(.half).isEmpty { return second(.whole) }
        if second(.half).isEmpty { return first(.whole) }
        return "<div class=\"pair\">\n\(first(.half))\n\(second(.half))\n</div>"
    }

    private var events: String {
        guard !timing.events.isEmpty else { return "" }
        let rows = timing.events.prefix(100).map { event in
            [
                AudioText.fixed(event.seconds, 6) + "\u{202F}s", event.kind.rawValue,
                AudioText.number(event.lengthMilliseconds, "ms"), "\(event.holeSamples)", "\(event.missingSamples)",
                AudioText.fixed(AudioText.milliseconds(event.delayAfter - event.delayBefore), 3) + "\u{202F}ms",
            ]
        }
        let note =
            timing.eventCount > rows.count
            ? "The first \(rows.count) of \(timing.eventCount)." : "Places and lengths are to the sample, at 48 kHz."
        let recurring = run.recurrenceText.map { " They recur \($0)." } ?? ""
        let head = ["At", "Kind", "Length", "Hole, samples", "Missing, samples", "Change of delay"]
        return section(
            "Gaps and repeats one by one", note + recurring, HTMLText.table("Gaps and repeats", head, Array(rows)))
    }

    private var minutes: String {
        guard !run.minutes.isEmpty else { return "" }
        let rows = run.minutes.map { minute in
            [
                "\(minute.number + 1)", minute.delay.map { AudioText.fixed(AudioText.milliseconds($0.mean), 2) } ?? "–",
                minute.delay.map { AudioText.fixed(AudioText.milliseconds($0.greatest - $0.least), 2) } ?? "–",
                minute.driftPPM.map { AudioText.number($0) } ?? "–", "\(minute.events)",
                AudioText.number(AudioFormat.milliseconds(samples: minute.disturbedSamples)),
                AudioText.fixed(minute.levelDBFS, 1), minute.likeness.map { AudioText.fixed($0, 2) } ?? "–",
            ]
        }
        let head = ["Minute", "Delay, ms", "Range, ms", "Drift, ppm", "Gaps", "Gaps, ms", "Level, dBFS", "Likeness"]
        let table = HTMLText.table("Minute by minute", head, rows)
        // A few are shown as they are: closed, they would be a card with nothing in it.
        let content =
            rows.count <= 20 ? table : "<details><summary>All \(rows.count) minutes</summary>\(table)</details>"
        return section("Minute by minute", "Delay, gaps and level of each minute.", content)
    }

    private var facts: String {
        var all = run.facts
        if timing.isFound {
            all.append(.init("Polarity", timing.isInverted ? "inverted" : "kept"))
            if let gain = timing.gainDB { all.append(.init("Gain", AudioText.number(gain, "dB"))) }
        }
        all.append(.init("Peak", AudioText.number(run.measurement.peakDBFS, "dBFS")))
        all += run.momentFiles.map { LoopbackRun.Fact("Worst moment", $0) }
        return HTMLPage.facts(all)
    }

    private var footer: String {
        "<footer>Delays are from the moment at which a sample is given to be played to that at which it is read again. "
            + "docs/loopback.md says how each figure is measured, and how exactly.</footer>"
    }
}
