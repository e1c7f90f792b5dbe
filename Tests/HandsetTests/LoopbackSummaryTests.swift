import Loopback
import LoopbackAnalysis
import Testing

@testable import handset

@Suite("A measurement in some ten lines")
struct LoopbackSummaryTests {
    @Test(
        "A label that is longer than its column is two spaces from its value, and shorter ones leave the column as it is"
    )
    func labels() {
        let signal = LoopbackSignal(carrierSeconds: 1)
        var run = LoopbackRun(
            mode: .device, startedAt: "2025-06-01T12:00:00Z",
            measurement: LoopbackAnalyser(signal, maximumDelay: 4_800).analyse(signal.samples(0..<signal.count)))
        run.facts = [
            .init("Suspended", "1"), .init("Because Handset's thread was held up", "1 of these, for 48.0 ms at worst"),
            .init("A label of 27 letters: this", "value"), .init("A label of 26 letters: one", "value"),
        ]
        let text = LoopbackSummary(run, TerminalStyle(isEnabled: false)).text
        let lines = text.split(separator: "\n").map(String.init)
        #expect(lines.contains("  Because Handset's thread was held up  1 of these, for 48.0 ms at worst"), "\(lines)")
        #expect(lines.contains("  A label of 27 letters: this  value"), "\(lines)")
        #expect(lines.contains("  A label of 26 letters: one  value"), "\(lines)")
        #expect(lines.contains("  Suspended" + String(repeating: " ", count: 18) + "1"), "\(lines)")
    }
}
