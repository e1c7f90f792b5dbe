internal import AudioKit
internal import Glibc
internal import LoopbackAnalysis

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

    var delayPlot: String {
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

    func responsePlot(_ size: Plot.Size) -> String {
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

    func noisePlot(_ size: Plot.Size) -> String {
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

    func distortionPlot(_ size: Plot.Size) -> String {
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

    func levelPlot(_ size: Plot.Size) -> String {
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

    func histogram(_ size: Plot.Size) -> String {
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

    func driftPlot(_ size: Plot.Size) -> String {
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
