internal import FoundationEssentials
internal import JSON
internal import LoopbackAnalysis

/// An earlier report, and the comparison of a run with it.
public struct LoopbackBaseline: Equatable, Sendable {
    /// A baseline that cannot be used.
    public struct Problem: Error, Equatable, Sendable, CustomStringConvertible {
        /// What is wrong, and what to try.
        public let description: String
    }

    /// When the earlier report was made, as ISO 8601 has it.
    public let startedAt: String
    /// The gain that it reports, in dB.
    var gainDB: Double? { figures["gain"] }
    private let figures: [String: Double]
    private let compared: [Figure]

    /// Reads a report of `handset loopback --json`.
    ///
    /// - Parameters:
    ///   - text: The report.
    ///   - mode: What is to be compared with it.
    public init(reading text: String, mode: LoopbackRun.Mode) throws(Problem) {
        try self.init(reading: text, schema: "handset-loopback/1", mode: mode.rawValue, comparing: Figure.all)
    }

    /// Reads a report of `handset loopback bot --json`.
    public init(readingBotReport text: String) throws(Problem) {
        try self.init(reading: text, schema: BotRun.schema, mode: "bot", comparing: Figure.ofBots)
    }

    private init(reading text: String, schema: String, mode: String, comparing compared: [Figure]) throws(Problem) {
        let object: JSONValue
        do {
            object = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        } catch {
            throw Problem(description: "it is not JSON. Give a report that --json has written.")
        }
        guard let wasSchema = object["schema"]?.string, wasSchema.hasPrefix("handset-loopback"),
            let was = object["mode"]?.string
        else {
            throw Problem(description: "it is not a report of handset loopback. Give one that --json has written.")
        }
        guard wasSchema == schema, was == mode else {
            throw Problem(
                description:
                    "it is a report of `loopback \(was)`, and this is `loopback \(mode)`. Give one of the same."
            )
        }
        startedAt = object["started_at"]?.string ?? "unknown"
        self.compared = compared
        figures = Figure.values(compared, in: object)
    }

    /// Compares the figures of `run` with those of the baseline; one that the baseline lacks is left out, and one that only
    /// the baseline has fails.
    func checks(_ run: LoopbackRun) -> [LoopbackVerdict.Check] {
        checks(.object(run.measuredMembers), withheld: run.measurement.withheld)
    }

    /// The same for a measured bot.
    func checks(_ run: BotRun) -> [LoopbackVerdict.Check] { checks(.object(run.measuredMembers), withheld: []) }

    private func checks(_ report: JSONValue, withheld: [Withheld]) -> [LoopbackVerdict.Check] {
        let now = Figure.values(compared, in: report)
        return compared.compactMap { figure in
            guard let before = figures[figure.key] else { return nil }
            let reason = withheld.first { figure.isPart(of: $0.figure) }?.reasonText
            let known = now[figure.key] ?? figure.bound(in: report, atMost: before)
            return figure.check(known, before: before, withheld: reason)
        }
    }
}

/// A figure that is compared: where a report has it, and by how much it may be worse.
private struct Figure: Equatable {
    enum Worse { case more, less, either }

    let key: String
    let name: String
    let unit: String
    let path: [String]
    let worse: Worse
    /// How much worse it may be: this amount, or ``share`` of the baseline, the greater of the two.
    let slack: Double
    var share = 0.0

    /// Repeated measurements of one cable, and of one call on an idle machine, differ by less.
    static let all = [
        Figure(
            key: "delay", name: "Delay", unit: "ms", path: ["timing", "delay_ms", "mean"], worse: .more, slack: 2,
            share: 0.1),
        Figure(key: "drift", name: "Drift", unit: "ppm", path: ["timing", "drift_ppm"], worse: .either, slack: 20),
        Figure(key: "events", name: "Gaps and repeats", unit: "", path: ["timing", "events"], worse: .more, slack: 0),
        Figure(
            key: "likeness", name: "Likeness", unit: "", path: ["timing", "likeness_p10"], worse: .less, slack: 0.05),
        Figure(key: "gain", name: "Gain", unit: "dB", path: ["level", "gain_db"], worse: .either, slack: 1),
        Figure(key: "noise", name: "Noise floor", unit: "dBFS", path: ["noise", "rms_dbfs"], worse: .more, slack: 3),
        Figure(
            key: "offset", name: "Constant offset (DC)", unit: "%", path: ["level", "offset_percent"], worse: .either,
            slack: 0.3),
        Figure(
            key: "distortion", name: "THD+N at 997 Hz", unit: "%", path: ["tone", "thd_n_percent"], worse: .more,
            slack: 0.05, share: 0.5),
        Figure(
            key: "band_low", name: "Band, lower end", unit: "Hz", path: ["response", "band_low_hz"], worse: .more,
            slack: 5, share: 0.13),
        Figure(
            key: "band_high", name: "Band, upper end", unit: "Hz", path: ["response", "band_high_hz"], worse: .less,
            slack: 5, share: 0.13),
        Figure(
            key: "ripple", name: "Evenness from 300 Hz to 3.4 kHz", unit: "dB", path: ["response", "speech_ripple_db"],
            worse: .more, slack: 1),
        Figure(
            key: "gain_left", name: "Gain of the left input", unit: "dB", path: ["channels", "left", "gain_db"],
            worse: .either, slack: 1),
        Figure(
            key: "gain_right", name: "Gain of the right input", unit: "dB", path: ["channels", "right", "gain_db"],
            worse: .either, slack: 1),
        Figure(
            key: "crosstalk", name: "Crosstalk", unit: "dB", path: ["channels", "crosstalk_db"], worse: .more, slack: 3),
        Figure(
            key: "speech_quality", name: "Quality of speech", unit: "", path: ["speech", "quality"], worse: .less,
            slack: 0.2),
    ]

    /// Times of a bot that answers at its own pace differ from run to run by a fifth.
    static let ofBots = [
        Figure(
            key: "greeting", name: "Greeting begins after", unit: "ms", path: ["greeting_after_ms"], worse: .more,
            slack: 100, share: 0.25),
        Figure(
            key: "response_p50", name: "Response, P50", unit: "ms", path: ["response", "p50_ms"], worse: .more,
            slack: 100, share: 0.25),
        Figure(
            key: "response_p95", name: "Response, P95", unit: "ms", path: ["response", "p95_ms"], worse: .more,
            slack: 150, share: 0.25),
        Figure(
            key: "barge_in_p95", name: "Barge-in, P95", unit: "ms", path: ["barge_in", "p95_ms"], worse: .more,
            slack: 100, share: 0.25),
        Figure(
            key: "cut_first", name: "Missing at the greeting's beginning", unit: "ms", path: ["cut", "first_ms"],
            worse: .more, slack: 20),
        Figure(
            key: "cut_last", name: "Missing at the greeting's end", unit: "ms", path: ["cut", "last_ms"], worse: .more,
            slack: 20),
        Figure(key: "noise", name: "Noise floor", unit: "dBFS", path: ["noise_dbfs"], worse: .more, slack: 6),
    ]

    static func values(_ figures: [Figure], in report: JSONValue) -> [String: Double] {
        var values: [String: Double] = [:]
        for figure in figures {
            var place: JSONValue? = report
            for member in figure.path { place = place?[member] }
            values[figure.key] = number(place)
            // What a busy machine needed ahead is no delay of the path.
            if figure.key == "delay", let extra = number(report["card"]?["extra_ahead_ms"]) {
                values[figure.key] = values[figure.key].map { $0 - extra }
            }
        }
        return values
    }

    private static func number(_ value: JSONValue?) -> Double? {
        switch value {
        case .number(let number): number
        case .integer(let number): Double(number)
        case .unsigned(let number): Double(number)
        case .null, .bool, .string, .array, .object, .none: nil
        }
    }

    /// A value that the noise hides, and that is good enough wherever it lies.
    func bound(in report: JSONValue, atMost before: Double) -> Double? {
        guard key == "crosstalk", let bound = Self.number(report["channels"]?["crosstalk_at_most_db"]) else {
            return nil
        }
        return bound <= before + slack ? bound : nil
    }

    /// Whether it is withheld with `figure`.
    func isPart(of figure: Withheld.Figure) -> Bool {
        switch figure {
        case .noise: key == "noise" || key == "offset"
        case .response: path.first == "response"
        case .tone(let frequency): path.first == "tone" && frequency == LoopbackSignal.toneHz
        case .channels: path.first == "channels"
        }
    }

    func check(_ now: Double?, before: Double, withheld: String?) -> LoopbackVerdict.Check {
        let room = max(slack, share * abs(before))
        let (isGood, limit): ((Double) -> Bool, String) =
            switch worse {
            case .more: ({ $0 <= before + room }, "at most \(AudioText.number(before + room, unit))")
            case .less: ({ $0 >= before - room }, "at least \(AudioText.number(before - room, unit))")
            case .either:
                (
                    { abs($0 - before) <= room },
                    "\(AudioText.number(before - room)) … \(AudioText.number(before + room, unit))"
                )
            }
        let was = AudioText.number(before, unit)
        guard let now else {
            return LoopbackVerdict.Check(
                key: "baseline_" + key, name: name + ", against the baseline",
                measured: withheld == nil ? "missing" : "withheld", limit: limit, outcome: .failed,
                advice: "The baseline has \(was), and this run has no such figure"
                    + (withheld.map { ": \($0). Measure again." }
                        ?? ". Measure with the same options, and see why the path no longer yields it."))
        }
        let good = isGood(now)
        return LoopbackVerdict.Check(
            key: "baseline_" + key, name: name + ", against the baseline",
            measured: "\(AudioText.number(now, unit)), was \(was)", limit: limit, outcome: good ? .passed : .failed,
            advice: good ? "" : "It is worse than in the earlier report: what has changed since?")
    }
}
