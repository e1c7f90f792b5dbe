import Foundation
import JSON
import LoopbackAnalysis
import TestSupport
import Loopback
import Testing

#if canImport(FoundationXML)
import FoundationXML
#endif

/// Reports for labs and CI services: JUnit, KTAP, and comparison with an earlier report.
@Suite("Reports for labs")
struct LabReportTests {
    private static let run: LoopbackRun = {
        var run = Recording.run
        run.origin = RunOrigin(version: "1.2.3", host: "rack-7", system: "Linux 6.1 x86_64")
        run.thresholds.quality = 3
        return run
    }()

    @Test("JUnit has a test for each check: failures with what to try, and what was not measured as skipped")
    func junit() throws {
        let text = TestReport(Self.run).junit
        let reader = Elements()
        let parser = XMLParser(data: Data(text.utf8))
        parser.delegate = reader
        #expect(parser.parse(), "\(String(describing: parser.parserError))\n\(text)")
        let checks = LoopbackVerdict(Self.run).checks
        let cases = reader.elements.filter { $0.name == "testcase" }
        #expect(cases.map { $0.attributes["name"] } == checks.map(\.key))
        let suite = try #require(reader.elements.first { $0.name == "testsuite" })
        #expect(suite.attributes["tests"] == "\(checks.count)" && suite.attributes["hostname"] == "rack-7")
        #expect(suite.attributes["failures"] == "\(checks.count { $0.outcome == .failed })")
        #expect(suite.attributes["skipped"] == "\(checks.count { $0.outcome == .unmeasured })")
        #expect(reader.elements.count { $0.name == "failure" } == checks.count { $0.outcome == .failed })
        #expect(
            reader.elements.contains { $0.name == "failure" && $0.attributes["message"]?.contains("at most 0") == true }
        )
        #expect(reader.elements.contains { $0.attributes["value"] == "hw:1 & \"more\"" })
    }

    private final class Elements: NSObject, XMLParserDelegate {
        var elements: [(name: String, attributes: [String: String])] = []
        func parser(
            _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String] = [:]
        ) { elements.append((elementName, attributes)) }
    }

    @Test("KTAP has its version, its plan, and a line for each check; text never begins a directive")
    func ktap() throws {
        var run = Self.run
        run.facts = [.init("Card #1", "one\ntwo")]
        let lines = TestReport(run).ktap.split(separator: "\n").map(String.init)
        let checks = LoopbackVerdict(run).checks
        #expect(lines[0] == "KTAP version 1" && lines[1] == "1..\(checks.count)")
        let results = lines.filter { $0.hasPrefix("ok ") || $0.hasPrefix("not ok ") }
        #expect(results.count == checks.count)
        for (index, (line, check)) in zip(results, checks).enumerated() {
            let word = check.outcome == .failed ? "not ok" : "ok"
            #expect(line.hasPrefix("\(word) \(index + 1) loopback.device.\(check.key)"), "\(line)")
            #expect(line.contains(" # SKIP ") == (check.outcome == .unmeasured), "\(line)")
        }
        #expect(lines.dropFirst(2).allSatisfy { $0.hasPrefix("#") || $0.hasPrefix("ok ") || $0.hasPrefix("not ok ") })
        #expect(lines.contains("# Card  1: one two"))
    }

    @Test("A run is as good as itself, and what is clearly worse than a baseline fails by name")
    func baseline() throws {
        var run = Self.run
        run.baseline = try LoopbackBaseline(reading: run.jsonText, mode: .device)
        let same = LoopbackVerdict(run).checks.filter { $0.key.hasPrefix("baseline_") }
        #expect(same.count >= 9 && same.allSatisfy { $0.outcome == .passed }, "\(same)")

        // The same way, with 5 ms more delay, 20 dB more noise, and softer by 6 dB.
        var random: UInt64 = 7
        let worse =
            [Int16](repeating: 0, count: 240)
            + Recording.captured.map { sample in
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Int16(Double(sample) / 2 + Double(Int32(truncatingIfNeeded: random >> 32)) / 2_147_483_648 * 200)
            }
        run.measurement = LoopbackAnalyser(Recording.signal, maximumDelay: 9_600).analyse(worse)
        let failed = LoopbackVerdict(run).checks.filter { $0.outcome == .failed }.map(\.key)
        for key in ["baseline_delay", "baseline_noise", "baseline_gain"] { #expect(failed.contains(key), "\(failed)") }
        #expect(!failed.contains("baseline_band_high") && !failed.contains("baseline_drift"), "\(failed)")
        #expect(run.jsonText.contains("baseline_noise") && LoopbackHTML(run).text.contains("against the baseline"))
    }

    @Test(
        "A gain that has changed since the baseline is named, with how much softer or louder the path is",
        arguments: [true, false])
    func changedGain(isSofter: Bool) throws {
        let clean = [Int16](repeating: 0, count: 960) + Recording.signal.samples(0..<Recording.signal.count)
        let (full, half) = (clean.map { $0 / 2 }, clean.map { $0 / 4 })
        let measure = { LoopbackAnalyser(Recording.signal, maximumDelay: 9_600).analyse($0) }
        var (before, after) = (Self.run, Self.run)
        before.measurement = measure(isSofter ? full : half)
        after.measurement = measure(isSofter ? half : full)
        after.baseline = try LoopbackBaseline(reading: before.jsonText, mode: .device)
        let verdict = LoopbackVerdict(after)
        let fault = try #require(verdict.faults.first { $0.name == .levelChange }, "\(verdict.faults)")
        let direction = isSofter ? "softer" : "louder"
        #expect(
            fault.text.hasPrefix("The signal comes back 6.0")
                && fault.text.hasSuffix("dB \(direction) than in the baseline"))
        #expect(fault.isFailure && !verdict.isPass && verdict.sentence == "\(fault.text).", "\(verdict.sentence)")
        after.baseline = try LoopbackBaseline(reading: after.jsonText, mode: .device)
        #expect(!LoopbackVerdict(after).faults.contains { $0.name == .levelChange })
    }

    @Test("A figure that the baseline has and this run lacks fails, withheld or not, and says which")
    func lacking() throws {
        var run = Self.run
        run.baseline = try LoopbackBaseline(reading: run.jsonText, mode: .device)
        run.measurement.response = nil
        run.measurement.withheld = [Withheld(.response, .gap)]
        run.measurement.noise = nil
        let checks = LoopbackVerdict(run).checks
        let band = try #require(checks.first { $0.key == "baseline_band_high" })
        #expect(
            band.outcome == .failed && band.measured == "withheld" && band.advice.contains("a piece of it is missing"))
        let noise = try #require(checks.first { $0.key == "baseline_noise" })
        #expect(noise.outcome == .failed && noise.measured == "missing", "\(noise)")
        // Signal to noise and the response: two figures, whatever they are needed for.
        let withheld = try #require(checks.first { $0.key == "withheld" })
        #expect(
            withheld.outcome == .failed && withheld.advice.contains("Frequency response is withheld"), "\(withheld)")
        run.thresholds.withheld = 9
        #expect(LoopbackVerdict(run).checks.first { $0.key == "withheld" }?.outcome == .passed)
    }

    @Test("A path that became narrow fails against its baseline and without one, and its unheard tone is listed")
    func narrow() throws {
        var run = Self.run
        run.thresholds.events = nil
        run.baseline = try LoopbackBaseline(reading: run.jsonText, mode: .device)
        let signal = Recording.signal
        run.measurement = LoopbackAnalyser(signal, maximumDelay: 9_600).analyse(
            FaultyPath(.lowPass3600, seed: 1).capture(signal.samples(0..<signal.count)))
        let verdict = LoopbackVerdict(run)
        let failed = verdict.checks.filter { $0.outcome == .failed }.map(\.key)
        #expect(
            failed.contains("baseline_band_high") && failed.contains("band") && failed.contains("tones"), "\(failed)")
        #expect(verdict.sentence.hasPrefix("Band-limited: 20"), "\(verdict.sentence)")
        #expect(run.json["unheard_tones_hz"] == .array([.number(9_973)]), "\(run.json["unheard_tones_hz"] ?? .null)")
        #expect(run.measurement.withheld.isEmpty)
        for report in [LoopbackHTML(run).text, TestReport(run).junit, TestReport(run).ktap] {
            #expect(report.contains(verdict.sentence))
        }
    }

    @Test("A baseline that is no report, or of another kind, is refused with what it is")
    func refusal() {
        for (text, part) in [
            ("nonsense", "not JSON"), ("{}", "not a report"), (Recording.silent.jsonText, "`loopback call`"),
        ] {
            let problem = #expect(throws: LoopbackBaseline.Problem.self) {
                try LoopbackBaseline(reading: text, mode: .device)
            }
            #expect(problem?.description.contains(part) == true, "\(String(describing: problem))")
        }
    }

    @Test("Gaps at a card's period are named by it, in text and as a cause in JSON")
    func recurrence() throws {
        let signal = LoopbackSignal(carrierSeconds: 4)
        var captured = signal.samples(0..<signal.count)
        // A sample is lost at every eighth boundary of periods of 1,024 frames.
        for place in stride(from: 40_960, to: 200_000, by: 8 * 1_024).reversed() { captured.remove(at: place) }
        var run = LoopbackRun(
            mode: .device, startedAt: "2025-06-01T12:00:00Z",
            measurement: LoopbackAnalyser(signal, maximumDelay: 9_600).analyse(captured))
        #expect(run.measurement.timing.eventCount > 10)
        run.periods = [
            .init("a period's boundary", frames: 1_024, rate: 48_000),
            .init("the end of the buffer", frames: 8_192, rate: 48_000),
        ]
        let text = try #require(run.recurrenceText)
        #expect(text.hasPrefix("every 8,192 frames (171") && text.hasSuffix(": the end of the buffer"), "\(text)")
        #expect(run.jsonText.contains("\"cause\" : \"the end of the buffer\""))
        #expect(LoopbackHTML(run).text.contains("They recur every 8,192 frames"))
        run.periods = [.init("a period's boundary", frames: 1_000, rate: 48_000)]
        #expect(try #require(run.recurrenceText).contains("neither a period nor a buffer"))
    }
}
