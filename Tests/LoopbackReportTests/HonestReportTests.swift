import Foundation
import JSON
@testable import LoopbackAnalysis
import Loopback
import Testing

/// What a report says of figures that cannot be trusted, of the causes of gaps, and of short and long soaks.
@Suite("What a report owns up to")
struct HonestReportTests {
    /// A call whose delay shrinks by 58 ms during the sweep, and in which a gap hits the tone of 997 Hz.
    private static let shaken: LoopbackRun = {
        let signal = LoopbackSignal(carrierSeconds: 2)
        let played = signal.samples(0..<signal.count)
        func middle(_ kind: LoopbackSignal.Kind) -> Int {
            let range = signal.sections.first { $0.kind == kind }?.range ?? 0..<0
            return (range.lowerBound + range.upperBound) / 2
        }
        let (sweep, tone) = (middle(.sweep), middle(.tone(frequencyHz: 997)))
        var captured = [Int16](repeating: 0, count: signal.count + 9_600)
        for index in captured.indices {
            let source = index < sweep ? index - 4_800 : index - 2_016
            guard played.indices.contains(source), !(tone..<tone + 480).contains(source) else { continue }
            captured[index] = played[source]
        }
        var run = LoopbackRun(
            mode: .device, startedAt: "2025-06-01T12:00:00Z",
            measurement: LoopbackAnalyser(signal, maximumDelay: 9_600).analyse(captured))
        run.origin = RunOrigin(version: "1.2.3", host: "rack-7", system: "Linux 6.1 x86_64")
        return run
    }()

    private static func object(_ run: LoopbackRun) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(run.jsonText.utf8))
    }

    @Test("Figures that cannot be trusted are withheld with their reason in JSON and HTML, and fail no check")
    func withheld() throws {
        let run = Self.shaken
        let object = try Self.object(run)
        #expect(object["response"] == nil && object["tone"] == nil)
        guard case .array(let withheld)? = object["withheld"] else {
            Issue.record("nothing is withheld")
            return
        }
        #expect(withheld.map { $0["figure"]?.string } == ["response", "tone"])
        #expect(withheld.map { $0["reason"]?.string } == ["delay_changed", "glitch"])
        let verdict = LoopbackVerdict(run)
        #expect(verdict.withheldCount == 2)
        let ripple = try #require(verdict.checks.first { $0.key == "speech_ripple" })
        #expect(
            ripple.outcome == .unmeasured && ripple.measured == "withheld" && ripple.advice.contains("−58"), "\(ripple)"
        )
        let page = LoopbackHTML(run).text
        #expect(page.contains("withheld: the delay changed by −58") && page.contains("there is a click or a gap in it"))
        #expect(!page.contains("Frequency response</h2>") && page.contains("2 figures withheld"))
    }

    @Test("A delay that changed unheard counts as a change of delay, and is reported")
    func delayRange() throws {
        var run = Self.shaken
        run.thresholds.delayRangeMilliseconds = 50
        let check = try #require(LoopbackVerdict(run).checks.first { $0.key == "delay_range" })
        #expect(check.outcome == .failed && check.measured.hasPrefix("58"), "\(check)")
        guard case .array(let changes)? = try Self.object(run)["timing"]?["unseen_changes"], let change = changes.first
        else {
            Issue.record("no change is told")
            return
        }
        #expect(change["change_ms"] == .integer(-58) || change["change_ms"] == .number(-58), "\(change)")
        #expect(LoopbackHTML(run).text.contains("the mean covers both"))
    }

    @Test(
        "A gap because Handset's own thread was held up names that, the buffer, and what to try; a card's own names the card"
    )
    func cause() throws {
        var run = Recording.run
        func advice() throws -> String { try #require(LoopbackVerdict(run).checks.first { $0.key == "events" }).advice }
        run.trouble = CardTrouble(
            playbackXruns: 1, ownXruns: 1, longestHoldUpMilliseconds: 48, isPriorityRefused: true, aheadMilliseconds: 20
        )
        var text = try advice()
        #expect(text.contains("Handset's own thread was held up for 48") && text.contains("and not the card"))
        #expect(text.contains("--buffer-ms 100") && text.contains("CAP_SYS_NICE"))
        run.trouble = CardTrouble(playbackXruns: 2, aheadMilliseconds: 20)
        text = try advice()
        #expect(text.contains("ran empty or over 2 times") && text.contains("driver"))
        let object = try Self.object(run)
        #expect(object["card"]?["playback_xruns"]?.integer == 2 && object["card"]?["own_xruns"]?.integer == 0)
    }

    @Test("Less than a minute is not extrapolated, and of a soak's minutes the worst is held against the limit")
    func disturbed() throws {
        var run = Recording.run
        run.thresholds.disturbedMillisecondsPerMinute = 20
        func measured() throws -> String {
            try #require(LoopbackVerdict(run).checks.first { $0.key == "disturbed" }).measured
        }
        // A hole of 10 ms and a repeat of 5 in eleven seconds.
        var found = try measured()
        #expect(found.hasPrefix("15"), "\(found)")
        run.minutes = [0, 4_800, 480].enumerated().map { number, disturbed in
            var minute = SoakMonitor.Minute(number: number, levelDBFS: -20)
            minute.disturbedSamples = disturbed
            return minute
        }
        found = try measured()
        #expect(found.hasPrefix("100"), "\(found)")
    }

    @Test("A report says which Handset measured, and on which host")
    func origin() throws {
        let object = try Self.object(Self.shaken)
        #expect(object["handset"]?.string == "1.2.3" && object["host"]?["name"]?.string == "rack-7")
        #expect(LoopbackHTML(Self.shaken).text.contains("Handset 1.2.3 on rack-7 (Linux 6.1 x86_64)"))
    }

    @Test("A soak's page has no empty section, and a single plot is drawn for the whole width")
    func soakPage() {
        var run = LoopbackRun(mode: .soak, startedAt: "2025-06-01T12:00:00Z", measurement: Recording.run.measurement)
        run.measurement.response = nil
        run.measurement.noise = nil
        run.measurement.tones = []
        run.minutes = [SoakMonitor.Minute(number: 0, levelDBFS: -20)]
        let page = LoopbackHTML(run).text
        // Neither response, noise, distortion nor drift: level and histogram stand alone.
        #expect(!page.contains("class=\"pair\"") && !page.contains("viewBox=\"0 0 500 "))
        #expect(page.contains("viewBox=\"0 0 1040 ") && page.contains("Level over time"))
        #expect(!page.contains("no silence heard"))
        #expect(page.contains("<h2>Minute by minute</h2>"))
    }

    @Test("A value that rounds to zero is 0 and not 0.0000, and drift has two places at most in its tile")
    func nothing() throws {
        let signal = LoopbackSignal(carrierSeconds: 1.5)
        let captured =
            [Int16](repeating: 0, count: 960) + signal.samples(0..<signal.count) + [Int16](repeating: 0, count: 4_800)
        let run = LoopbackRun(
            mode: .device, startedAt: "2025-06-01T12:00:00Z",
            measurement: LoopbackAnalyser(signal, maximumDelay: 9_600).analyse(captured))
        let checks = LoopbackVerdict(run).checks
        #expect(checks.first { $0.key == "gain" }?.measured == "0\u{202F}dB", "\(checks)")
        #expect(checks.allSatisfy { !$0.measured.contains("0.0000") }, "\(checks)")
        #expect(try abs(#require(run.measurement.timing.driftPPM).value) < 0.095)
        let tile = #/<dt>Drift</dt><dd>−?0\.0\d\u{202F}ppm<small>± 0\.0\d\u{202F}ppm</#
        #expect(try tile.firstMatch(in: LoopbackHTML(run).text) != nil)
    }

    @Test(
        "Gaps that a stalled machine explains are withheld, and it is named in place of the path; a gap elsewhere fails all"
    )
    func stalled() throws {
        var run = Recording.run
        run.thresholds = LoopbackThresholds(.device)
        run.thresholds.faults = nil
        run.thresholds.distortionPercent = nil
        #expect(run.measurement.timing.eventCount == 2)
        // What an xrun left in the card's buffer.
        run.measurement.evidence.echo = PathEvidence.Echo(delaySamples: -3_422, levelDB: -27.1)
        run.trouble = CardTrouble(
            playbackXruns: 3, ownXruns: 3, longestHoldUpMilliseconds: 48, isPriorityRefused: true,
            aheadMilliseconds: 20, ownGaps: 2)
        var verdict = LoopbackVerdict(run)
        #expect(
            verdict.sentence.hasPrefix(
                "Measured in part only: figures withheld or missing (1), because this machine kept"),
            "\(verdict.sentence)")
        #expect(!verdict.isPass && verdict.withheldCount == 1 && verdict.faults.allSatisfy { !$0.isFailure })
        #expect(!verdict.faults.contains { $0.name == .echo })
        let events = try #require(verdict.checks.first { $0.key == "events" })
        #expect(events.outcome == .unmeasured && events.measured == "withheld", "\(events)")
        #expect(events.advice.contains("for up to 48") && events.advice.contains("CAP_SYS_NICE"), "\(events)")
        run.thresholds.withheld = nil
        #expect(LoopbackVerdict(run).isPass)

        // One gap is elsewhere: it is the path's, although the thread was held up three times.
        run.trouble?.ownGaps = 1
        verdict = LoopbackVerdict(run)
        #expect(!verdict.isPass && verdict.checks.first { $0.key == "events" }?.outcome == .failed)
        #expect(verdict.faults.contains { $0.name == .echo })
        // A soak looks for such moments.
        run.trouble?.ownGaps = 2
        run.mode = .soak
        #expect(LoopbackVerdict(run).checks.first { $0.key == "events" }?.outcome == .failed)
    }

    @Test(
        "What a busy machine needed ahead is in the delay, and neither a threshold nor a baseline blames the path for it"
    )
    func extraAhead() throws {
        var run = Recording.run
        let delay = try #require(run.measurement.timing.meanDelay) / 48
        run.thresholds.delayMilliseconds = delay - 10
        func checks() -> [LoopbackVerdict.Check] { LoopbackVerdict(run).checks.filter { $0.key.hasSuffix("delay") } }
        run.baseline = try LoopbackBaseline(reading: run.jsonText, mode: .device)
        #expect(checks().map(\.outcome) == [.failed, .passed], "\(checks())")
        run.trouble = CardTrouble(aheadMilliseconds: 40, extraAheadMilliseconds: 12)
        #expect(checks().map(\.outcome) == [.passed, .passed], "\(checks())")
        #expect(try #require(checks().first).name.contains("12\u{202F}ms that this busy machine needed ahead"))
        run.trouble?.extraAheadMilliseconds = 5
        #expect(checks().map(\.outcome) == [.failed, .passed], "\(checks())")

        // The earlier report is that of a busy machine, too.
        let busy = try LoopbackBaseline(reading: run.jsonText, mode: .device)
        run.trouble = CardTrouble(aheadMilliseconds: 40)
        run.baseline = busy
        #expect(checks().last?.outcome == .failed, "\(checks())")
    }
}
