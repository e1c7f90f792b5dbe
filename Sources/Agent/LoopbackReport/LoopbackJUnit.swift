internal import AudioKit
internal import LoopbackAnalysis

/// The report for a CI service: JUnit's XML, in which each check is a test.
public struct LoopbackJUnit: Sendable {
    private let run: LoopbackRun
    private let verdict: LoopbackVerdict

    /// Makes the report of a run.
    public init(_ run: LoopbackRun) {
        self.run = run
        verdict = LoopbackVerdict(run)
    }

    /// The document.
    public var text: String {
        let checks = verdict.checks
        let failures = checks.count { $0.outcome == .failed }
        let skipped = checks.count { $0.outcome == .unmeasured }
        let seconds = AudioText.fixed(Double(run.measurement.capturedSamples) / Double(AudioFormat.sampleRate), 3)
        let counts =
            "tests=\"\(checks.count)\" failures=\"\(failures)\" errors=\"0\" skipped=\"\(skipped)\" time=\"\(seconds)\""
        let host = run.origin.map { " hostname=\"\(Self.escaped($0.host))\"" } ?? ""
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="handset loopback" \(counts)>
            <testsuite name="\(suite)" timestamp="\(Self.escaped(run.startedAt))"\(host) \(counts)>
            <properties>
            \(properties.joined(separator: "\n"))
            </properties>
            \(checks.map(testCase).joined(separator: "\n"))
            </testsuite>
            </testsuites>

            """
    }

    private var suite: String { "handset.loopback.\(run.mode.rawValue)" }

    private var properties: [String] {
        let origin = run.origin.map { [LoopbackRun.Fact("Measured by", $0.text)] } ?? []
        return (origin + run.facts).map {
            "<property name=\"\(Self.escaped($0.label))\" value=\"\(Self.escaped($0.value))\"/>"
        }
    }

    private func testCase(_ check: LoopbackVerdict.Check) -> String {
        let head = "<testcase classname=\"\(suite)\" name=\"\(Self.escaped(check.key))\" time=\"0\""
        let line = Self.escaped("\(check.name): \(check.measured), \(check.limit)")
        switch check.outcome {
        case .passed: return head + "><system-out>\(line)</system-out></testcase>"
        case .unmeasured:
            let reason = check.advice.isEmpty ? line : Self.escaped("\(check.name): \(check.advice)")
            return head + "><skipped message=\"\(reason)\"/></testcase>"
        case .failed:
            return head
                + "><failure type=\"threshold\" message=\"\(line)\">\(Self.escaped(check.advice))</failure></testcase>"
        }
    }

    /// `text` within XML: without the control characters that XML 1.0 has no way to write.
    private static func escaped(_ text: String) -> String {
        HTMLText.escaped(
            String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value < 0xFFFE })))
    }
}
