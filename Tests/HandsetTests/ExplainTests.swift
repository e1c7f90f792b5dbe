import CallDiagnosis
import Foundation
import Testing

@testable import CallAgent
@testable import handset

@Suite("What `handset explain` prints")
struct ExplainTests {
    private static func call(_ change: (inout KeptCall) -> Void = { _ in }) -> KeptCall {
        var call = KeptCall(
            call: "0a1b", application: "app", isOver: true, began: 1_764_407_642_114, invite: "inv-1",
            direction: "incoming",
            peer: "alice@example.org")
        (call.reason, call.endedBy, call.duration) = ("completed", "remote", 60_000)
        (call.answeredAfter, call.establishedAfter, call.setUpTime) = (10, 100, 200)
        var media = MediaFacts()
        (
            media.sent.packets, media.received.packets, media.received.reports, media.frames,
            media.received.playout.played, media.received.quiet
        ) = (
            3_000, 2_995, 12, 3_000, 60_000, 10
        )
        call.media = media
        change(&call)
        return call
    }

    @Test("docs/explain.md lists every finding, and no other one")
    func page() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/explain.md"), encoding: .utf8)
        let findings = try #require(page.range(of: "## Findings")),
            record = try #require(page.range(of: "## The record"))
        let rows = page[findings.upperBound..<record.lowerBound].matches(of: /(?m)^\| `([a-z_]+)` \|/).map {
            String($0.1)
        }
        #expect(Set(rows) == Set(Finding.Code.allCases.map(\.rawValue)) && Set(rows).count == rows.count)
        let sides = Set(
            page.matches(of: /`((?:this_side|other_side|path|path_here|path_there|service|program|not_clear))`/).map {
                String($0.1)
            })
        #expect(sides.isSubset(of: Set(Finding.Side.allCases.map(\.rawValue))))
        for member in [
            "sent", "remote_lost", "round_trip_ms", "buffered_p95_ms", "quiet_ms", "capture_gap_ms", "frames_skipped",
        ] {
            #expect(page[record.upperBound...].contains("`\(member)`"))
        }
    }

    @Test("A record's figures survive its line, and an older record without them is read")
    func record() throws {
        let call = Self.call { $0.media?.received.dropped = ["early": 4] }
        let line = try #require(call.line)
        #expect(KeptCall(line: line) == call)
        #expect(line.contains("\"remote_lost\":0") && line.contains("\"dropped\":{\"early\":4}"))
        #expect(
            KeptCall(line: line.replacing("\"remote_lost\":0,", with: ""))?.media == call.media, "of another version")
        let older = Self.call { $0.media = nil }
        #expect(KeptCall(line: try #require(older.line))?.media == nil)
    }

    @Test("A clean call is said to be one; one without figures is not")
    func clean() {
        #expect(ExplainCommand.text(Self.call()).hasSuffix("\n\nNothing went wrong that this side can see."))
        #expect(ExplainCommand.text(Self.call { $0.media = nil }).contains("has no figures"))
        #expect(
            ExplainCommand.text(Self.call { ($0.establishedAfter, $0.reason) = (nil, "busy") }).contains(
                "never established"))
    }

    @Test("What decided about a call is printed below its outcome, and in JSON beside it")
    func decided() throws {
        let call = Self.call { $0.decidedBy = #"answer.rules[4] "office" (line 10)"# }
        let lines = ExplainCommand.text(call).split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines[1] == #"Decided by answer.rules[4] "office" (line 10)."# && lines[2].isEmpty)
        #expect(ExplainCommand.object(call).contains(#""decided_by": "answer.rules[4] \"office\" (line 10)""#))
        #expect(!ExplainCommand.text(Self.call()).contains("Decided"))
        #expect(ExplainCommand.object(Self.call()).contains(#""decided_by": null"#))
    }

    @Test("A finding is printed with whose fault it looks like, its figures, and what to try")
    func finding() {
        let text = ExplainCommand.text(Self.call { $0.media?.received.lost = 300 })
        #expect(text.hasPrefix("2025-11-29T09:14:02"))
        #expect(
            text.contains(
                "\nPackets to this device were lost. (the network to this device)\n  Because: 9.1 % of 3295 "))
        #expect(text.contains("\n  Try: "))
    }
}
