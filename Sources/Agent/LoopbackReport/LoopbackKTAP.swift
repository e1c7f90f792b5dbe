/// The report for kernel labs: KTAP, version 1 (docs.kernel.org/dev-tools/ktap.html), in which each check is a test.
public struct LoopbackKTAP: Sendable {
    private let run: LoopbackRun
    private let verdict: LoopbackVerdict

    /// Makes the report of a run.
    public init(_ run: LoopbackRun) {
        self.run = run
        verdict = LoopbackVerdict(run)
    }

    /// The lines, each with its end.
    public var text: String {
        var lines = ["KTAP version 1", "1..\(verdict.checks.count)"]
        if let origin = run.origin { lines.append("# " + Self.plain(origin.text)) }
        for fact in run.facts { lines.append("# " + Self.plain("\(fact.label): \(fact.value)")) }
        for (index, check) in verdict.checks.enumerated() { lines += test(check, number: index + 1) }
        return lines.map { $0 + "\n" }.joined()
    }

    private func test(_ check: LoopbackVerdict.Check, number: Int) -> [String] {
        let name = "\(number) loopback.\(run.mode.rawValue).\(check.key)"
        let line = "# " + Self.plain("\(check.name): \(check.measured), \(check.limit)")
        switch check.outcome {
        case .passed: return [line, "ok \(name)"]
        case .unmeasured:
            return ["ok \(name) # SKIP " + Self.plain(check.advice.isEmpty ? "not measured" : check.advice)]
        case .failed: return [line, "# " + Self.plain(check.advice), "not ok \(name)"]
        }
    }

    /// `text` on one line, and without the character that begins a directive.
    private static func plain(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || $0 == "#" || $0.value == 0x7F ? " " : $0 }))
    }
}
