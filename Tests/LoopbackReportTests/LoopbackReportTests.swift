import AudioKit
import Foundation
import JSON
import LoopbackAnalysis
import Loopback
import Testing

/// A recording with a delay of 20 ms, a step of 5 ms in it, a hole, and a little noise and distortion.
enum Recording {
    static let signal = LoopbackSignal(carrierSeconds: 2)

    static let captured: [Int16] = {
        let played = signal.samples(0..<signal.count)
        var state: UInt64 = 1
        return (0..<signal.count + 4_800).map { index in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let noise = Double(Int32(truncatingIfNeeded: state >> 32)) / 2_147_483_648 * 20
            let source = index < 70_000 ? index - 960 : index - 1_200
            let isHole = (90_000..<90_480).contains(index)
            guard source >= 0, source < played.count, !isHole else { return Int16(noise) }
            let value = Double(played[source]) / 32_768
            return Int16(max(-32_000, min(32_000, (value - 0.2 * value * value * value) * 32_768 * 0.8 + noise)))
        }
    }()

    static let run: LoopbackRun = {
        var run = LoopbackRun(
            mode: .device, startedAt: "2025-06-01T12:00:00Z",
            measurement: LoopbackAnalyser(signal, maximumDelay: 9_600).analyse(captured))
        run.facts = [.init("Card <1>", "hw:1 & \"more\"")]
        run.stages = [.init("playback", milliseconds: 12), .init("capture", milliseconds: 8)]
        run.momentFiles = ["worst-1.wav"]
        return run
    }()

    static let silent = LoopbackRun(
        mode: .call, startedAt: "2025-06-01T12:00:00Z",
        measurement: LoopbackAnalyser(signal, maximumDelay: 4_800).analyse([Int16](repeating: 0, count: 96_000)))
}

@Suite("Reports of a loopback")
struct LoopbackReportTests {
    @Test("A gap fails a device's checks, and says what to try")
    func verdict() throws {
        let verdict = LoopbackVerdict(Recording.run)
        #expect(!verdict.isPass)
        let gaps = try #require(verdict.checks.first { $0.key == "events" })
        #expect(gaps.outcome == .failed && gaps.measured == "2" && gaps.limit == "at most 0" && !gaps.advice.isEmpty)
        let delay = try #require(verdict.checks.first { $0.key == "delay" })
        #expect(delay.outcome == .passed && delay.advice.isEmpty)
    }

    @Test("A run whose thresholds all hold passes")
    func pass() {
        var run = Recording.run
        run.thresholds.events = 2
        #expect(LoopbackVerdict(run).isPass)
        run.thresholds.delayMilliseconds = 10
        #expect(LoopbackVerdict(run).checks.filter { $0.outcome == .failed }.map(\.key) == ["delay"])
    }

    @Test("Speech that sounds bad fails a call's check, and speech that was not judged neither passes nor fails")
    func quality() throws {
        var run = Recording.silent
        func check() throws -> LoopbackVerdict.Check {
            try #require(LoopbackVerdict(run).checks.first { $0.key == "speech_quality" })
        }
        #expect(try check().outcome == .unmeasured)
        let silence = [Int16](repeating: 0, count: 240_000)
        var speaker = SyntheticSpeech()
        run.quality = SpeechQualityAnalysis().compare(reference: speaker.samples(seconds: 4), degraded: silence)
        #expect(try check().outcome == .failed && check().advice.contains("Lost packets"))
        let object = try JSONDecoder().decode(JSONValue.self, from: Data(run.jsonText.utf8))
        #expect(object["speech"]?["quality"] == run.quality.map { .number(($0.score * 100).rounded() / 100) })
        #expect(LoopbackHTML(run).text.contains("Quality of speech</dt>"))
        run.thresholds.quality = 1
        #expect(try check().outcome == .passed)
    }

    @Test("Silence fails with advice about cables, and what was not measured neither passes nor fails")
    func silence() throws {
        let verdict = LoopbackVerdict(Recording.silent)
        let signal = try #require(verdict.checks.first)
        #expect(signal.outcome == .failed && signal.advice.contains("handset devices"))
        #expect(verdict.checks.first { $0.key == "delay" }?.outcome == .unmeasured)
    }

    @Test("The JSON report says what was measured, and reads back")
    func json() throws {
        let text = Recording.run.jsonText
        let value = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        #expect(value["schema"]?.string == "handset-loopback/1")
        #expect(value["passed"] == .bool(false))
        #expect(value["timing"]?["events"]?.integer == 2)
        guard case .array(let events)? = value["timing"]?["event_list"], let first = events.first else {
            Issue.record("no events")
            return
        }
        #expect(first["kind"]?.string == "repeat")
        #expect(first["missing_samples"]?.integer == -240)
        #expect(first["at_sample"]?.integer.map { abs($0 - 70_000) <= 2 } == true)
        #expect(value["tone"]?["thd_n_percent"] != nil && value["response"]?["points"] != nil)
        #expect(value["minutes"] == nil)
    }

    @Test("A report of nothing has nulls and no gaps in its syntax")
    func emptyJSON() throws {
        let value = try JSONDecoder().decode(JSONValue.self, from: Data(Recording.silent.jsonText.utf8))
        #expect(value["timing"]?["delay_ms"]?["mean"] == .null)
        #expect(value["response"] == nil)
    }

    @Test("The page is whole: well formed, without scripts or addresses, with a text beside each plot")
    func page() throws {
        for run in [Recording.run, Recording.silent] {
            let page = LoopbackHTML(run).text
            #expect(!page.contains("<script") && !page.contains("http"))
            let plots = page.components(separatedBy: "<svg").count - 1
            #expect(page.components(separatedBy: "<desc").count - 1 == plots)
            #expect(page.components(separatedBy: "role=\"img\"").count - 1 == plots)
            #expect(!page.contains("NaN") && !page.contains("nan,") && !page.contains("inf"))
            for name in ["section", "svg", "table", "tr", "div", "details", "dl", "polyline"] where name != "polyline" {
                let opened = page.components(separatedBy: "<\(name)").count
                #expect(opened == page.components(separatedBy: "</\(name)>").count, "\(name)")
            }
        }
        let page = LoopbackHTML(Recording.run).text
        #expect(page.contains("Card &lt;1&gt;") && page.contains("hw:1 &amp; &quot;more&quot;"))
        #expect(page.contains("Histogram of gaps") && page.contains("Frequency response"))
    }

    @Test("A line that takes a frame's place leaves nothing of it, nor of what Ctrl-C shows behind it")
    func erasure() {
        let view = LiveView(width: 40, usesColour: false)
        let state = LiveView.State(
            phase: "Soaking", elapsedSeconds: 3, totalSeconds: nil, timing: TimingSummary(), playedDBFS: -20,
            capturedDBFS: -26, capturedPeakDBFS: -12)
        var screen = Screen()
        screen.write("first\n" + view.frame(state, isFirst: true) + view.frame(state, isFirst: false))
        #expect(screen.lines.count == 1 + LiveView.lineCount + 1 && screen.lines[1].hasPrefix("Soaking"))
        screen.write("^C" + LiveView.erasure + "· last\n")
        #expect(screen.lines == ["first", "· last", ""])
        screen.write(view.frame(state, isFirst: true) + "^C" + LiveView.ending + "report")
        #expect(screen.lines.count == 2 + LiveView.lineCount + 1 && screen.lines.last == "report")
    }

    @Test("A frame of the live view has its lines, and none is too wide", arguments: [40, 80, 300])
    func live(_ width: Int) {
        let view = LiveView(width: width, usesColour: false)
        for timing in [TimingSummary(), Recording.run.measurement.timing] {
            for total in [nil, 12.0] {
                let lines = view.lines(
                    LiveView.State(
                        phase: "measuring", elapsedSeconds: 3, totalSeconds: total, timing: timing, playedDBFS: -20,
                        capturedDBFS: -26, capturedPeakDBFS: -12))
                #expect(lines.count == LiveView.lineCount)
                #expect(lines.allSatisfy { $0.count <= width }, "\(lines.map(\.count))")
            }
        }
        let lines = view.lines(
            LiveView.State(
                phase: "measuring", elapsedSeconds: 3, totalSeconds: 12, timing: Recording.run.measurement.timing,
                playedDBFS: -20, capturedDBFS: -26, capturedPeakDBFS: -12))
        #expect(lines[1].contains("25.00 ms"))
        #expect(lines[4].contains("2, the longest"))
    }
}
