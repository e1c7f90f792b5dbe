internal import AudioKit

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
