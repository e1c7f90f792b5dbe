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
    let program: String
    /// The tests' name as a whole, such as `loopback.device`.
    let suite: String
    let startedAt: String
    let origin: RunOrigin?
    let facts: [LoopbackRun.Fact]
    /// What a failure is of.
    let failureKind: String
    /// How long all of it took, in seconds.
    let seconds: Double
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
