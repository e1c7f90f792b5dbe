import Foundation
import Testing

@testable import CallControl
@testable import CallDiagnosis

@Suite("A call second by second")
struct CallTimelineTests {
    /// A timeline with a row for each number of received packets.
    private static func timeline(_ received: [Int], sent: Int = 50, lost: [Int] = []) -> CallTimeline {
        var timeline = CallTimeline(begins: 1_764_417_790_000)
        var counters: [CallTimeline.Column: Int] = [:]
        for (second, count) in received.enumerated() {
            counters[.received, default: 0] += count
            counters[.sent, default: 0] += sent
            counters[.lost, default: 0] += second < lost.count ? lost[second] : 0
            counters[.sentLevel] = 88
            timeline.note(counters, at: second + 1)
        }
        return timeline
    }

    @Test("Rows have what was added since the row before, and survive JSON, in which equal rows are counted")
    func json() throws {
        let timeline = Self.timeline([50, 50, 0, 0, 0, 49])
        #expect(timeline[.received] == [50, 50, 0, 0, 0, 49] && timeline[.sent] == [50, 50, 50, 50, 50, 50])
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = String(decoding: try encoder.encode(timeline), as: UTF8.self)
        #expect(
            text
                == #"{"begins":1764417790000,"received":"50*2,0*3,49","rows":6,"sent":"50*6","sent_level":"88*6","step_s":1}"#
        )
        let read = try JSONDecoder().decode(CallTimeline.self, from: Data(text.utf8))
        #expect(CallTimeline.Column.allCases.allSatisfy { read[$0] == timeline[$0] } && read.step == 1)
    }

    @Test("What is no timeline is read without a trap, with 240 rows at most")
    func hostile() {
        for text in [
            #"{"begins":0,"rows":9999999,"step_s":0,"received":"1*99999999"}"#,
            #"{"begins":-5,"rows":-1,"step_s":-3,"received":"*,*3,x"}"#,
            #"{"begins":1,"rows":2,"step_s":1,"received":"99999999999999,1"}"#, #"{"rows":1}"#,
            #"{"begins":9223372036854775807,"rows":9,"step_s":9223372036854775807,"received":"1*9","lost":"2147483647*9"}"#,
            #"{"begins":-9223372036854775808,"rows":9,"step_s":1,"received":"-2147483648*9"}"#,
        ] {
            let read = try? JSONDecoder().decode(CallTimeline.self, from: Data(text.utf8))
            #expect(read?.count ?? 0 <= CallTimeline.mostRows)
            guard let read else { continue }
            _ = (
                read.words(0..<read.count), read.length(0..<read.count), read.concentration(of: .received),
                read.longestPause
            )
        }
    }

    @Test(
        "A call of an hour has rows of 16 s, with nothing lost of its counts, and less than 20 kB even if no two rows are equal"
    )
    func thins() throws {
        var timeline = CallTimeline(begins: 0)
        var counters: [CallTimeline.Column: Int] = [:]
        for second in 1...3_600 {
            for column in CallTimeline.Column.allCases {
                counters[column] =
                    column.isGauge ? second % 100 : (counters[column] ?? 0) + 1 + second * second % 97
            }
            if timeline.isDue(at: second) { timeline.note(counters, at: second) }
        }
        #expect(timeline.step == 16 && timeline.count == 225)
        #expect(timeline[.received].reduce(0, +) == counters[.received])
        #expect(try JSONEncoder().encode(timeline).count < 20_000)
    }

    @Test("Delay, jitter and levels are values of their row, of which the largest is left when rows become one")
    func gauges() {
        var timeline = CallTimeline(begins: 0)
        for second in 1...300 where timeline.isDue(at: second) {
            let delay = second % 2 == 0 ? 40 : 90
            timeline.note([.delay: delay, .silent: 20 * second, .sentLevel: second % 100], at: second)
        }
        #expect(timeline.step == 2)
        #expect(timeline[.delay].prefix(119) == [Int](repeating: 90, count: 119)[...] && timeline[.delay].last == 40)
        #expect(timeline[.silent].prefix(119).allSatisfy { $0 == 40 })
        #expect(timeline[.silent].reduce(0, +) == 20 * 300 && timeline[.sentLevel].prefix(2) == [2, 4])
    }

    @Test("What was counted while the counters could not be had is spread over that time")
    func spreads() {
        var timeline = CallTimeline(begins: 0)
        timeline.note([.received: 50], at: 1)
        timeline.note([.received: 200], at: 4)
        #expect(timeline[.received] == [50, 50, 50, 50])
        timeline.note([.received: 200 + 50 * 86_400], at: 86_404)
        #expect(timeline.count < CallTimeline.mostRows && timeline[.received].reduce(0, +) == 200 + 50 * 86_400)
    }

    @Test("It names when no packet came, and when most of what is counted happened")
    func times() throws {
        let timeline = Self.timeline(
            [Int](repeating: 50, count: 10) + [Int](repeating: 0, count: 15) + [Int](repeating: 50, count: 20),
            lost: [Int](repeating: 0, count: 25) + [740, 10])
        let pause = try #require(timeline.longestPause)
        #expect(pause == 10..<25 && timeline.length(pause) == 15_000)
        #expect(timeline.words(pause) == "from 12:03:20 to 12:03:35" && timeline.sum(.sent, in: pause) == 750)
        #expect(timeline.concentration(of: .lost) == 25..<26)
        #expect(timeline.concentration(of: .sent) == nil, "throughout")
        #expect(Self.timeline([0, 50, 50]).longestPause == nil && Self.timeline([]).longestPause == nil)
    }

    @Test("Of the moments of a call, the first 48 and the last 16 are kept")
    func moments() {
        var moments = CallMoments()
        for index in 0..<1_000 {
            moments.note(CallMoment(.direction, at: Int64(index), text: String(repeating: "x", count: 999)))
        }
        #expect(moments.kept.count == CallMoments.most)
        #expect(moments.kept.map(\.at) == Array(0..<48) + Array(984..<1_000))
        #expect(moments.kept[0].text?.count == 240)
        // One character may have any number of scalars.
        let long = CallMoment(.descriptionRefused, at: 0, text: "e" + String(repeating: "\u{301}", count: 9_999))
        #expect(long.text?.unicodeScalars.count == 240)
    }
}
