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
