internal import CallDiagnosis
internal import ControlWire
internal import DeviceDiagnosis

/// A finding about a call or a device, to read and to parse.
struct FindingText {
    private let code: String
    private let side: Finding.Side
    private let text: String
    private let evidence: String
    private let advice: String

    init(_ finding: Finding) {
        code = finding.code.rawValue
        side = finding.side
        text = finding.text
        evidence = finding.evidence
        advice = finding.advice
    }

    /// - Parameter finding: Of a running device.
    init(_ finding: ControlFinding) {
        code = finding.code
        side = Finding.Side(rawValue: finding.side) ?? .unclear
        text = finding.text
        evidence = finding.because
        advice = finding.advice
    }

    init(_ finding: DeviceFinding) {
        code = finding.code.rawValue
        side = finding.side
        text = finding.text
        evidence = finding.evidence
        advice = finding.advice
    }

    /// What is wrong and whose fault it looks like, what says so, and what to try.
    var lines: [String] { ["\(text) (\(side.words))", "  Because: \(evidence)", "  Try: \(advice)"] }

    /// The same as a JSON object.
    var object: JSONObjectText {
        var object = JSONObjectText()
        object.add("code", code)
        object.add("side", side.rawValue)
        object.add("text", text)
        object.add("because", evidence)
        object.add("try", advice)
        return object
    }
}
