import JSON
import Loopback
import TestSupport
import Testing

@testable import BotProbe

@Suite("The reports of a measured bot")
struct BotReportTests {
    /// A run that has something of everything.
    private static var whole: BotRun {
        var measured = BotMeasurement()
        measured.samples = 60 * 48_000
        measured.hasSound = true
        measured.noiseDBFS = -80
        measured.greetingStart = 4_800
        measured.turns = [.answered(24_000), .answered(48_000), .overlapped, .unanswered]
        measured.interruptions = [.stopped(9_600), .ignored(200_000), .missed]
        measured.interruptionTalkOver = [9_600, 96_000]
        measured.questionTalkOver = 480
        measured.presses = [.init(key: "5", response: 4_800)]
        measured.hangUp = .came(48_000)
        measured.cut = GreetingCut(first: 960, last: 0)
        measured.withheld = [.init(figure: .cut, reason: .greetingUnfinished)]
        var run = BotRun(startedAt: "2026-11-24T00:00:00Z", measurement: measured)
        run.origin = RunOrigin(version: "1.2.3", host: "rack-7", system: "Linux 6.1 x86_64")
        run.facts = [.init("Called", "ws://127.0.0.1/ws")]
        run.ownDelays = [.init("Frame", milliseconds: 20)]
        return run
    }

    private static func outcome(_ key: String, _ run: BotRun) -> LoopbackVerdict.Outcome? {
        BotVerdict(run).checks.first { $0.key == key }?.outcome
    }

    @Test("Each figure is held against its threshold, and what is off is not checked")
    func thresholds() {
        var run = Self.whole
        run.measurement.withheld = []
        #expect(Self.outcome("cut", run) == .passed)
        #expect(Self.outcome("response_p50", run) == .passed)
        #expect(Self.outcome("response_p95", run) == .passed)
        #expect(Self.outcome("unanswered", run) == .failed)
        #expect(Self.outcome("barge_in_p95", run) == .passed)
        #expect(Self.outcome("talk_over", run) == .failed)
        #expect(Self.outcome("ignored", run) == .failed)
        #expect(Self.outcome("keys", run) == .passed)
        #expect(Self.outcome("hang_up", run) == .passed)
        #expect(!BotVerdict(run).isPass)
        run.thresholds.unanswered = 1
        run.thresholds.ignored = nil
        run.thresholds.talkOverMilliseconds = 2_000
        #expect(Self.outcome("ignored", run) == nil)
        #expect(BotVerdict(run).isPass)
        run.thresholds.responseMilliseconds = 900
        #expect(Self.outcome("response_p95", run) == .failed)
    }

    @Test("A figure that cannot be trusted is withheld with its reason, and neither passes nor fails")
    func withheld() {
        var run = Self.whole
        run.thresholds.unanswered = 1
        run.measurement.withheld = [
            .init(figure: .turns, reason: .late(2)), .init(figure: .cut, reason: .otherGreeting(0.1)),
        ]
        #expect(Self.outcome("response_p95", run) == .unmeasured)
        #expect(Self.outcome("cut", run) == .unmeasured)
        let advice = BotVerdict(run).checks.first { $0.key == "response_p95" }?.advice ?? ""
        #expect(advice.contains("late in 2"))
        guard case .object(let object) = run.json, case .object(let response)? = object["response"] else {
            Issue.record("the report has no response times")
            return
        }
        #expect(response["p95_ms"] == .null)
    }

    @Test("A bot that was not heard fails, and so does one that answers no key and does not hang up")
    func silence() {
        var measured = BotMeasurement()
        measured.turns = [.unanswered]
        measured.presses = [.init(key: "#", response: nil)]
        measured.hangUp = .missing
        let run = BotRun(startedAt: "", measurement: measured)
        for key in ["sound", "unanswered", "keys", "hang_up"] { #expect(Self.outcome(key, run) == .failed, "\(key)") }
        #expect(Self.outcome("response_p50", run) == .unmeasured)
    }

    @Test("A report's members keep their names")
    func members() throws {
        var whole = JSONMembers()
        try whole.take(Self.whole.jsonText.utf8)
        let differences = try FrozenList("bot-report").differences(from: whole.lines("bot "))
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }

    @Test("JUnit and KTAP have a test for each check of a bot, and a passed one says its word once")
    func labs() {
        let report = TestReport(Self.whole)
        let checks = BotVerdict(Self.whole).checks
        #expect(report.cases.map(\.name) == checks.map(\.key) && report.cases.map(\.outcome) == checks.map(\.outcome))
        #expect(report.junit.contains("<testsuite name=\"handset.loopback.bot\""))
        #expect(report.junit.contains("<system-out>The bot was heard: yes</system-out>"), "\(report.junit)")
        #expect(report.junit.contains("message=\"Questions without an answer: 1, at most 0\""), "\(report.junit)")
        #expect(report.junit.contains("<skipped message=\"Missing of the greeting, at either end: Withheld: "))
        #expect(report.ktap.contains("\nok 1 loopback.bot.sound\n") && report.ktap.contains("not ok "))
    }

    @Test("A bot's page has the verdict, each turn, interruption and key, and what is withheld")
    func page() {
        let page = BotHTML(Self.whole).text
        for part in [
            "A voice bot, measured", "Failed</div>", "Questions one by one",
            "the bot was talking at the question&#39;s end",
            "Interruptions one by one", "the bot talked on", "answered after 100", "the greeting was not over",
            "ws://127.0.0.1/ws", "Handset 1.2.3 on rack-7", "Delay by stage",
        ] {
            #expect(page.contains(part.replacing("&#39;", with: "'")), "\(part)")
        }
        var silent = BotRun(startedAt: "<now>", measurement: BotMeasurement())
        silent.facts = [.init("<b>", "&")]
        let empty = BotHTML(silent).text
        #expect(!empty.contains("<b>") && !empty.contains("<now>") && !empty.contains("one by one"))
    }

    @Test("A bot is as good as itself, and one that has become slower fails against its baseline by name")
    func baseline() throws {
        var run = Self.whole
        run.measurement.withheld = []
        run.baseline = try LoopbackBaseline(readingBotReport: run.jsonText)
        let same = BotVerdict(run).checks.filter { $0.key.hasPrefix("baseline_") }
        #expect(same.count >= 6 && same.allSatisfy { $0.outcome == .passed }, "\(same)")
        run.measurement.turns = [.answered(48_000), .answered(96_000)]
        run.measurement.cut = GreetingCut(first: 960, last: 4_800)
        let failed = BotVerdict(run).checks.filter { $0.outcome == .failed && $0.key.hasPrefix("baseline_") }
        #expect(failed.map(\.key) == ["baseline_response_p50", "baseline_response_p95", "baseline_cut_last"])
        #expect(run.jsonText.contains("\"baseline\" : {"))
    }

    @Test("A report of another kind is refused as a baseline with what it is", arguments: ["", "{}", "device"])
    func otherBaseline(text: String) throws {
        let report = text == "device" ? Recording.run.jsonText : text
        let problem = #expect(throws: LoopbackBaseline.Problem.self) { try LoopbackBaseline(readingBotReport: report) }
        let part = ["": "not JSON", "{}": "not a report", "device": "`loopback device`, and this is `loopback bot`"][
            text]
        #expect(try problem?.description.contains(#require(part)) == true, "\(String(describing: problem))")
        #expect(throws: LoopbackBaseline.Problem.self) {
            try LoopbackBaseline(reading: Self.whole.jsonText, mode: .device)
        }
    }
}
