internal import AudioKit
internal import BotProbe

/// The report of a measured bot for a person: one page that needs nothing else.
public struct BotHTML: Sendable {
    private let run: BotRun
    private let verdict: BotVerdict

    /// Makes the page of a run.
    public init(_ run: BotRun) {
        self.run = run
        verdict = BotVerdict(run)
    }

    private static let heading = "A voice bot, measured"

    /// The page.
    public var text: String {
        let measured = run.measurement
        let seconds = Double(measured.samples) / Double(AudioFormat.sampleRate)
        let header = HTMLPage.header(
            Self.heading, startedAt: run.startedAt, origin: run.origin, length: "a call of \(AudioText.time(seconds))",
            checks: verdict.checks, withheldCount: measured.withheld.count)
        return HTMLPage(
            title: "\(Self.heading), \(run.startedAt)",
            body: [
                header, HTMLPage.tiles(tiles), HTMLPage.checks(verdict.checks), withheld, turns, interruptions, keys,
                HTMLPage.stages("What of it is Handset's own", run.ownDelays),
                HTMLPage.facts(run.facts + [.init("Noise", AudioText.number(Double(measured.noiseDBFS), "dBFS"))]),
                Self.footer,
            ]
        ).text
    }

    private static func milliseconds(_ samples: Int) -> String {
        AudioText.number(AudioFormat.milliseconds(samples: samples).rounded(), "ms")
    }

    /// Percentiles are left out where they are withheld.
    private func percentile(_ percent: Int, _ times: [Int], _ figure: BotMeasurement.Figure) -> String? {
        guard run.reason(figure) == nil else { return nil }
        return BotMeasurement.percentile(percent, of: times).map(Self.milliseconds)
    }

    private var tiles: [String] {
        let measured = run.measurement
        return [
            HTMLPage.tile(
                "Greeting", measured.greetingStart.map(Self.milliseconds),
                measured.greetingStart == nil ? "not heard" : "after the call began"),
            HTMLPage.tile(
                "Response, P50", percentile(50, measured.responses, .turns),
                "\(measured.responses.count) of \(measured.turns.count) questions answered"),
            HTMLPage.tile(
                "Response, P95", percentile(95, measured.responses, .turns), run.reason(.turns) ?? "the slowest turns"),
            HTMLPage.tile(
                "Barge-in, P95", percentile(95, measured.stops, .interruptions),
                "\(measured.stops.count) of \(measured.interruptions.count) interruptions stopped it"),
            HTMLPage.tile(
                "Both talk", measured.interruptionTalkOver.max().map(Self.milliseconds), "longest in an interruption"),
        ]
    }

    private var withheld: String {
        let rows = run.measurement.withheld.map { [$0.figure.rawValue, "withheld: \(BotRun.text($0.reason))"] }
        guard !rows.isEmpty else { return "" }
        return HTMLPage.section(
            "Not to be trusted", "Something disturbed these figures. Measure again.",
            HTMLText.table("Figures that are withheld", ["Figure", "Why"], rows))
    }

    private var turns: String {
        let rows = run.measurement.turns.enumerated().map { index, turn in
            switch turn {
            case .answered(let time): ["\(index + 1)", "answered", Self.milliseconds(time)]
            case .overlapped: ["\(index + 1)", "the bot was talking at the question's end", "–"]
            case .unanswered: ["\(index + 1)", "not answered", "–"]
            case .doubtful: ["\(index + 1)", "withheld", "–"]
            }
        }
        guard !rows.isEmpty else { return "" }
        return HTMLPage.section(
            "Questions one by one", "From the question's last sample to the bot's first sound.",
            HTMLText.table("Questions", ["Question", "Outcome", "Response"], rows))
    }

    private var interruptions: String {
        let rows = run.measurement.interruptions.enumerated().map { index, interruption in
            switch interruption {
            case .stopped(let time): ["\(index + 1)", "the bot stopped", Self.milliseconds(time)]
            case .ignored(let time): ["\(index + 1)", "the bot talked on", Self.milliseconds(time)]
            case .missed: ["\(index + 1)", "there was no long answer to interrupt", "–"]
            case .doubtful: ["\(index + 1)", "withheld", "–"]
            }
        }
        guard !rows.isEmpty else { return "" }
        return HTMLPage.section(
            "Interruptions one by one", "From the interruption's first sample to the bot's last sound.",
            HTMLText.table("Interruptions", ["Interruption", "Outcome", "Time"], rows))
    }

    private var keys: String {
        let rows = run.measurement.presses.map {
            [String($0.key), $0.response.map { "answered after \(Self.milliseconds($0))" } ?? "not answered"]
        }
        guard !rows.isEmpty else { return "" }
        return HTMLPage.section(
            "Keys one by one", "From the key to a sound, or to the bot's hang-up.",
            HTMLText.table("Keys", ["Key", "Outcome"], rows))
    }

    private static let footer =
        "<footer>Times are those at the caller's ear. docs/loopback.md says how each figure is measured, and how exactly."
        + "</footer>"
}
