internal import AudioKit
internal import LoopbackAnalysis
internal import Glibc

/// The report for a person: one page that needs nothing else, neither network nor scripts.
public struct LoopbackHTML: Sendable {
    private let run: LoopbackRun
    private let verdict: LoopbackVerdict

    /// Makes the page of a run.
    public init(_ run: LoopbackRun) {
        self.run = run
        verdict = LoopbackVerdict(run)
    }

    private var timing: TimingSummary { run.measurement.timing }

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

    private func section(_ title: String, _ note: String, _ content: String) -> String {
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

extension LoopbackHTML {
    private func seconds(_ position: Int) -> Double { Double(position) / Double(AudioFormat.sampleRate) }

    /// Time in the unit that its length asks for: seconds, minutes, hours.
    private func timeAxis() -> (axis: Plot.Axis, scale: Double) {
        let length = max(1, Double(run.measurement.capturedSamples) / Double(AudioFormat.sampleRate))
        let (scale, unit) = length > 7_200 ? (3_600.0, "hours") : length > 180 ? (60.0, "minutes") : (1.0, "seconds")
        return (Plot.Axis.linear(0...length / scale, "Time, \(unit)", count: 8), scale)
    }

    private static func around(_ low: Double, _ high: Double, least: Double) -> ClosedRange<Double> {
        let margin = max((high - low) * 0.12, (least - (high - low)) / 2, 1e-6)
        return low - margin...high + margin
    }

    private var delayPlot: String {
        let points = timing.history.points
        guard points.count > 1, let range = timing.delayRange else { return "" }
        let (axis, scale) = timeAxis()
        let (low, high) = (AudioText.milliseconds(range.lowerBound), AudioText.milliseconds(range.upperBound))
        let summary =
            "From \(AudioText.number(low, "ms")) to \(AudioText.number(high, "ms")), "
            + "with \(timing.eventCount) gaps and repeats."
        var plot = Plot(
            "Delay over time", summary: summary, axis,
            .linear(Self.around(low, high, least: 0.1), "Delay, ms"), .whole)
        // A jump is a step, not a slope: lines are interrupted if there is an event between two points.
        var pieces: [[DelayHistory.Point]] = [[]]
        var events = timing.events[...]
        for point in points {
            var jumped = false
            while let event = events.first, event.position < point.position {
                jumped = jumped || abs(event.delayAfter - event.delayBefore) > 0.5 || event.holeSamples > 4_800
                events = events.dropFirst()
            }
            if jumped { pieces.append([]) }
            pieces[pieces.count - 1].append(point)
        }
        for piece in pieces {
            let places = piece.map { seconds($0.position) / scale }
            plot.band(
                zip(places, piece).map {
                    ($0, AudioText.milliseconds($1.least), AudioText.milliseconds($1.greatest))
                })
            plot.line(zip(places, piece).map { ($0, AudioText.milliseconds($1.mean)) })
        }
        plot.marks(
            timing.events.prefix(200).map {
                (
                    $0.seconds / scale,
                    "\($0.kind.rawValue) of \(AudioText.number($0.lengthMilliseconds, "ms")) at \(AudioText.time($0.seconds))"
                )
            })
        let note =
            timing.eventCount == 0
            ? "Nothing was lost or repeated." : "Red marks are gaps and repeats: \(timing.eventCount)."
        return section("Delay over time", note, plot.svg)
    }

    private func responsePlot(_ size: Plot.Size) -> String {
        guard let response = run.measurement.response else { return "" }
        let middle = response.points.min { abs($0.frequencyHz - 1_000) < abs($1.frequencyHz - 1_000) }?.gainDB ?? 0
        let values = response.points.map { ($0.frequencyHz, $0.gainDB - middle) }
        let top = max(6, (values.map(\.1).max() ?? 0).rounded(.up) + 3)
        let summary =
            "Within 3 dB of 1 kHz from \(AudioText.frequency(response.bandHz.lowerBound)) to "
            + AudioText.frequency(response.bandHz.upperBound) + "."
        var plot = Plot(
            "Frequency response", summary: summary, .frequency,
            .linear(max(-60, min(-24, (values.map(\.1).min() ?? 0) - 3))...top, "Gain against 1 kHz, dB", count: 6),
            size)
        plot.region(300...3_400, "speech")
        plot.line(values)
        return section("Frequency response", summary, plot.svg)
    }

    private func noisePlot(_ size: Plot.Size) -> String {
        guard let noise = run.measurement.noise else { return "" }
        let bottom = max(-140, (noise.thirds.map(\.levelDBFS).min() ?? -100).rounded(.down) - 6)
        let top = max(bottom + 40, (noise.thirds.map(\.levelDBFS).max() ?? -60) + 10)
        let summary =
            "\(AudioText.number(noise.levelDBFS.rounded(), "dBFS")) in all, "
            + "\(AudioText.number(noise.weightedDBFS.rounded(), "dBFS(A)")) as the ear hears it."
        var plot = Plot(
            "Noise floor", summary: summary, .frequency, .linear(bottom...top, "Third octaves, dBFS"), size)
        plot.band(noise.thirds.map { ($0.frequencyHz, bottom, $0.levelDBFS) })
        plot.line(noise.thirds.map { ($0.frequencyHz, $0.levelDBFS) })
        return section("Noise floor", summary, plot.svg)
    }

    private func distortionPlot(_ size: Plot.Size) -> String {
        guard let response = run.measurement.response else { return "" }
        let values = response.points.compactMap { point in
            point.distortionPercent.map { (point.frequencyHz, log10(max(1e-3, $0))) }
        }
        guard values.count > 1 else { return "" }
        let bottom = min(-2, (values.map(\.1).min() ?? -2).rounded(.down))
        let top = max(1, (values.map(\.1).max() ?? 1).rounded(.up))
        let axis = Plot.Axis(
            range: bottom...top, label: "Harmonics 2 to 5, %",
            ticks: stride(from: bottom, through: top, by: 1).map { ($0, Self.power($0)) })
        let thousand = response.points.min { abs($0.frequencyHz - 1_000) < abs($1.frequencyHz - 1_000) }
        let summary = "At 1 kHz: \(AudioText.number(thousand?.distortionPercent ?? 0, "%"))."
        var plot = Plot("Distortion", summary: summary, .frequency, axis, size)
        plot.line(values, style: "second")
        return section("Distortion over frequency", summary + " From the sweep; noise sets its floor.", plot.svg)
    }

    private static func power(_ exponent: Double) -> String {
        exponent >= 0
            ? "\(Int(pow(10, exponent).rounded()))" : "0." + String(repeating: "0", count: Int(-exponent) - 1) + "1"
    }

    private func levelPlot(_ size: Plot.Size) -> String {
        let points = timing.history.points
        guard points.count > 1 else { return "" }
        let (axis, scale) = timeAxis()
        let gains = points.map(\.meanGainDB)
        let (low, high) = (gains.min() ?? 0, gains.max() ?? 0)
        let summary = "Captured against played: from \(AudioText.number(low, "dB")) to \(AudioText.number(high, "dB"))."
        var plot = Plot(
            "Level over time", summary: summary, axis, .linear(Self.around(low, high, least: 6), "Gain, dB"), size)
        plot.line(points.map { (seconds($0.position) / scale, $0.meanGainDB) })
        return section("Level over time", summary, plot.svg)
    }

    private func histogram(_ size: Plot.Size) -> String {
        guard timing.eventCount > 0 else { return "" }
        let bounds = TimingSummary.lengthBounds
        let names = bounds.map { "≤\(AudioText.number($0, places: 1))" } + ["more"]
        let most = Double(timing.lengths.max() ?? 1)
        let axis = Plot.Axis(
            range: -0.6...Double(names.count) - 0.4, label: "Length, ms",
            ticks: names.enumerated().map { (Double($0.offset), $0.element) })
        let summary =
            "\(timing.eventCount) in all: "
            + LoopbackEvent.Kind.allCases.compactMap { kind in
                timing.counts[kind].map { "\($0) \(kind.rawValue)" }
            }.joined(separator: ", ") + "."
        var plot = Plot(
            "Histogram of gaps", summary: summary, axis,
            .linear(0...max(1.2, most * 1.2), "Gaps and repeats", count: most < 4 ? Int(most) : 4),
            size)
        plot.bars(
            timing.lengths.enumerated().map { (Double($0.offset), Double($0.element), "\($0.element)") }, width: 0.7)
        return section("Histogram of gaps", summary, plot.svg)
    }

    private func driftPlot(_ size: Plot.Size) -> String {
        let values = run.minutes.compactMap { minute in minute.driftPPM.map { (Double(minute.number) + 0.5, $0) } }
        guard values.count > 1 else { return "" }
        let (low, high) = (values.map(\.1).min() ?? 0, values.map(\.1).max() ?? 0)
        let summary = "From \(AudioText.number(low, "ppm")) to \(AudioText.number(high, "ppm")), minute by minute."
        var plot = Plot(
            "Drift", summary: summary, .linear(0...Double(run.minutes.count), "Time, minutes", count: 8),
            .linear(Self.around(low, high, least: 4), "Drift, ppm"), size)
        plot.line(values, style: "second")
        return section("Drift over time", summary, plot.svg)
    }
}
