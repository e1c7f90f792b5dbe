internal import ArgumentParser
internal import AudioKit
internal import BotProbe
internal import Glibc
internal import Loopback

/// Where the reports of a measured bot go, and how the command ends.
struct BotOutput {
    private let files: ReportFiles
    private let thresholds: BotThresholds
    private let baseline: LoopbackBaseline?

    /// Reads the baseline, and tries whether the reports can be written, before anything is measured.
    init(_ options: LoopbackFileOptions, thresholds: BotThresholds) throws {
        self.thresholds = thresholds
        baseline = try ReportFiles.baseline(options.baselinePath) { text throws(LoopbackBaseline.Problem) in
            try LoopbackBaseline(readingBotReport: text)
        }
        files = try ReportFiles(options)
    }

    /// Writes the reports, says how it went, and ends the command with what follows from it.
    func finish(_ run: inout BotRun, isInterrupted: Bool) throws {
        run.thresholds = thresholds
        run.origin = .here
        run.baseline = baseline
        let report = run
        try files.deliver(
            json: { report.jsonText }, html: { BotHTML(report).text }, tests: { TestReport(report) },
            summary: { BotSummary(report, $0).text })
        if isInterrupted { throw ExitCode(ExitStatus.interrupted.rawValue) }
        guard run.measurement.hasSound else { throw ExitCode(ExitStatus.nothingMeasured.rawValue) }
        guard BotVerdict(run).isPass else { throw ExitCode(ExitStatus.thresholdsFailed.rawValue) }
    }
}

/// A measured bot in some ten lines: what was found, each check, and what to try.
struct BotSummary {
    private let run: BotRun
    private let style: TerminalStyle

    init(_ run: BotRun, _ style: TerminalStyle) {
        self.run = run
        self.style = style
    }

    private static func milliseconds(_ samples: Int) -> String {
        "\(Int(AudioFormat.milliseconds(samples: samples).rounded())) ms"
    }

    /// Percentiles, unless they are withheld.
    private func spread(_ times: [Int], _ figure: BotMeasurement.Figure) -> String {
        guard !run.measurement.withheld.contains(where: { $0.figure == figure }),
            let median = BotMeasurement.percentile(50, of: times), let most = BotMeasurement.percentile(95, of: times)
        else { return "" }
        return " (P50 \(Self.milliseconds(median)), P95 \(Self.milliseconds(most)))"
    }

    var text: String {
        let measured = run.measurement
        let verdict = BotVerdict(run)
        var lines: [String] = []
        func add(_ label: String, _ value: String?) {
            // A label that is longer than its column is followed by a colon.
            if let value { lines.append("  " + (label.count < 27 ? label.padded(to: 27) : label + ": ") + value) }
        }
        add("greeting", measured.greetingStart.map { "after \(Self.milliseconds($0))" })
        if !measured.turns.isEmpty { add("response", response) }
        if !measured.interruptions.isEmpty { add("barge-in", bargeIn) }
        if let longest = measured.interruptionTalkOver.max() {
            add("both talk", "\(Self.milliseconds(longest)) at most in an interruption")
        }
        if measured.questionTalkOver > 0 {
            add("", "\(Self.milliseconds(measured.questionTalkOver)) in all questions together")
        }
        add(
            "missing of the greeting",
            measured.cut.map {
                "\(Self.milliseconds($0.first)) at its beginning, \(Self.milliseconds($0.last)) at its end"
            })
        for press in measured.presses {
            add("key \(press.key)", press.response.map { "answered after \(Self.milliseconds($0))" } ?? "no answer")
        }
        for withheld in measured.withheld {
            add("withheld", "\(withheld.figure.rawValue): \(BotRun.text(withheld.reason))")
        }
        add("noise", "\(measured.noiseDBFS) dBFS")
        for fact in run.facts { add(fact.label.lowercased(), fact.value) }
        if !run.ownDelays.isEmpty {
            add("of it Handset's own", "")
            for stage in run.ownDelays {
                lines.append("    \(stage.milliseconds.rounded(toPlaces: 1)) ms  \(stage.name)")
            }
        }
        lines += verdict.checks.map(line)
        let title = verdict.isPass ? style.green("within the thresholds") : style.red("not within the thresholds")
        return ([style.bold("The bot is ") + title] + lines).joined(separator: "\n")
    }

    private var response: String {
        let turns = run.measurement.turns
        let counts = [
            (turns.count { $0 == .overlapped }, "talked over"), (turns.count { $0 == .unanswered }, "not answered"),
        ].filter { $0.0 > 0 }.map { ", \($0.0) \($0.1)" }.joined()
        let spread = spread(run.measurement.responses, .turns)
        return "\(run.measurement.responses.count) of \(turns.count) questions\(spread)\(counts)"
    }

    private var bargeIn: String {
        let spread = spread(run.measurement.stops, .interruptions)
        return
            "\(run.measurement.stops.count) of \(run.measurement.interruptions.count) interruptions stopped it\(spread)"
    }

    private func line(_ check: LoopbackVerdict.Check) -> String {
        let text = check.sentence
        let advice = check.advice.isEmpty ? "" : "\n      \(check.advice)"
        switch check.outcome {
        case .passed: return "  \(style.green("✓")) \(text)"
        case .unmeasured: return "  \(style.dim("–")) \(style.dim(text))" + advice
        case .failed: return "  \(style.red("✗")) \(text)" + advice
        }
    }
}
