internal import AudioKit
internal import BotProbe
internal import LoopbackAnalysis

/// A run as a list of tests, for services and labs that know nothing of sound: JUnit's XML and KTAP.
public struct TestReport: Sendable {
    /// One test.
    public struct Case: Equatable, Sendable {
        /// A name that stays the same between versions, for programs.
        public let name: String
        /// How it went.
        public let outcome: LoopbackVerdict.Outcome
        /// What was tested and found, in a line.
        public let text: String
        /// What a failure may come from, or why it was not measured; may be empty.
        public let advice: String
        /// How long it took, in seconds; 0 of a check, which takes none.
        public let seconds: Double

        /// Makes a test.
        public init(
            name: String, outcome: LoopbackVerdict.Outcome, text: String, advice: String = "", seconds: Double = 0
        ) {
            self.name = name
            self.outcome = outcome
            self.text = text
            self.advice = advice
            self.seconds = seconds
        }

        init(_ check: LoopbackVerdict.Check) {
            // What was not measured has a reason in place of figures.
            let text =
                check.outcome == .unmeasured && !check.advice.isEmpty
                ? "\(check.name): \(check.advice)" : check.sentence
            self.init(name: check.key, outcome: check.outcome, text: text, advice: check.advice)
        }
    }

    /// The program's part that tested, such as `handset loopback`.
    private let program: String
    /// The tests' name as a whole, such as `loopback.device`.
    private let suite: String
    private let startedAt: String
    private let origin: RunOrigin?
    private let facts: [LoopbackRun.Fact]
    /// What a failure is of.
    private let failureKind: String
    /// How long all of it took, in seconds.
    private let seconds: Double
    /// The tests, in order.
    public let cases: [Case]

    /// Reports a measured loopback.
    public init(_ run: LoopbackRun) {
        let verdict = LoopbackVerdict(run)
        self.init(
            suite: "loopback.\(run.mode.rawValue)", startedAt: run.startedAt, origin: run.origin,
            facts: [LoopbackRun.Fact("Verdict", verdict.sentence)] + run.facts,
            samples: run.measurement.capturedSamples, checks: verdict.checks)
    }

    /// Reports a measured bot.
    public init(_ run: BotRun) {
        self.init(
            suite: "loopback.bot", startedAt: run.startedAt, origin: run.origin, facts: run.facts,
            samples: run.measurement.samples, checks: BotVerdict(run).checks)
    }

    private init(
        suite: String, startedAt: String, origin: RunOrigin?, facts: [LoopbackRun.Fact], samples: Int,
        checks: [LoopbackVerdict.Check]
    ) {
        self.init(
            program: "handset loopback", suite: suite, startedAt: startedAt, origin: origin, facts: facts,
            failureKind: "threshold", seconds: Double(samples) / Double(AudioFormat.sampleRate),
            cases: checks.map(Case.init))
    }

    /// Reports other tests.
    ///
    /// - Parameters:
    ///   - program: The program's part that tested, such as `handset loopback`.
    ///   - suite: The tests' name as a whole, which stays the same between versions.
    ///   - startedAt: When it began, as ISO 8601 has it.
    ///   - origin: Which Handset tested, and where.
    ///   - facts: What a reader should know, in order.
    ///   - failureKind: What a failure is of, in a word.
    ///   - seconds: How long all of it took.
    ///   - cases: The tests, in order.
    public init(
        program: String, suite: String, startedAt: String, origin: RunOrigin?, facts: [LoopbackRun.Fact],
        failureKind: String, seconds: Double, cases: [Case]
    ) {
        self.program = program
        self.suite = suite
        self.startedAt = startedAt
        self.origin = origin
        self.facts = facts
        self.failureKind = failureKind
        self.seconds = seconds
        self.cases = cases
    }
}

extension LoopbackVerdict.Check {
    /// The check in a line: what is checked, what was measured, and what was allowed where that is another text.
    public var sentence: String { measured == limit ? "\(name): \(measured)" : "\(name): \(measured), \(limit)" }
}

// MARK: - JUnit

extension TestReport {
    /// The report for a CI service: JUnit's XML.
    public var junit: String {
        let failures = cases.count { $0.outcome == .failed }
        let skipped = cases.count { $0.outcome == .unmeasured }
        let counts =
            "tests=\"\(cases.count)\" failures=\"\(failures)\" errors=\"0\" skipped=\"\(skipped)\" "
            + "time=\"\(AudioText.fixed(seconds, 3))\""
        let host = origin.map { " hostname=\"\(Self.escaped($0.host))\"" } ?? ""
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="\(Self.escaped(program))" \(counts)>
            <testsuite name="\(className)" timestamp="\(Self.escaped(startedAt))"\(host) \(counts)>
            <properties>
            \(properties.joined(separator: "\n"))
            </properties>
            \(cases.map(testCase).joined(separator: "\n"))
            </testsuite>
            </testsuites>

            """
    }

    private var className: String { Self.escaped("handset.\(suite)") }

    private var properties: [String] {
        let origin = origin.map { [LoopbackRun.Fact("Measured by", $0.text)] } ?? []
        return (origin + facts).map {
            "<property name=\"\(Self.escaped($0.label))\" value=\"\(Self.escaped($0.value))\"/>"
        }
    }

    private func testCase(_ test: Case) -> String {
        let time = test.seconds == 0 ? "0" : AudioText.fixed(test.seconds, 3)
        let head = "<testcase classname=\"\(className)\" name=\"\(Self.escaped(test.name))\" time=\"\(time)\""
        let text = Self.escaped(test.text)
        switch test.outcome {
        case .passed: return head + "><system-out>\(text)</system-out></testcase>"
        case .unmeasured: return head + "><skipped message=\"\(text)\"/></testcase>"
        case .failed:
            return head + "><failure type=\"\(failureKind)\" message=\"\(text)\">\(Self.escaped(test.advice))"
                + "</failure></testcase>"
        }
    }

    /// `text` within XML: without the control characters that XML 1.0 has no way to write.
    private static func escaped(_ text: String) -> String {
        HTMLText.escaped(
            String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value < 0xFFFE })))
    }
}

// MARK: - KTAP

extension TestReport {
    /// The report for kernel labs: the lines of KTAP, version 1 (docs.kernel.org/dev-tools/ktap.html).
    public var ktap: String {
        var lines = ["KTAP version 1", "1..\(cases.count)"]
        if let origin { lines.append("# " + Self.plain(origin.text)) }
        for fact in facts { lines.append("# " + Self.plain("\(fact.label): \(fact.value)")) }
        for (index, test) in cases.enumerated() { lines += self.lines(test, number: index + 1) }
        return lines.map { $0 + "\n" }.joined()
    }

    private func lines(_ test: Case, number: Int) -> [String] {
        let name = Self.plain("\(number) \(suite).\(test.name)")
        let text = "# " + Self.plain(test.text)
        switch test.outcome {
        case .passed: return [text, "ok \(name)"]
        case .unmeasured:
            return ["ok \(name) # SKIP " + Self.plain(test.advice.isEmpty ? "not measured" : test.advice)]
        case .failed:
            return [text] + (test.advice.isEmpty ? [] : ["# " + Self.plain(test.advice)]) + ["not ok \(name)"]
        }
    }

    /// `text` on one line, and without the character that begins a directive.
    private static func plain(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || $0 == "#" || $0.value == 0x7F ? " " : $0 }))
    }
}
