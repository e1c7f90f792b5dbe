import RTP
import Testing
import Core

@Suite("Which of several streams counts")
struct StreamSelectorTests {
    private static func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    /// A selector that has followed stream 1 and then stream 2, whose first packet came at 1 s.
    private static func changed() -> StreamSelector {
        var selector = StreamSelector()
        for number in UInt16(0)..<50 {
            _ = selector.receive(ssrc: 1, sequenceNumber: 100 + number, at: at(Int64(number) * 20))
        }
        _ = selector.receive(ssrc: 2, sequenceNumber: 9_000, at: at(1_000))
        return selector
    }

    @Test("A stream that was never heard takes over with its first packet")
    func newStream() {
        var selector = StreamSelector()
        let first = selector.receive(ssrc: 1, sequenceNumber: 65_535, at: .zero)
        let wrapped = selector.receive(ssrc: 1, sequenceNumber: 0, at: Self.at(20))
        let late = selector.receive(ssrc: 1, sequenceNumber: 65_535, at: Self.at(40))
        let other = selector.receive(ssrc: 2, sequenceNumber: 7, at: Self.at(60))
        #expect(
            [first, wrapped, late, other] == [
                .takesOver, .current(isNewest: true), .current(isNewest: false), .takesOver,
            ])
        #expect(selector.ssrc == 2)
    }

    @Test("Late packets of a stream that has given way never count, however many come")
    func late() {
        var selector = Self.changed()
        for number in UInt16(100)..<150 {
            let verdict = selector.receive(ssrc: 1, sequenceNumber: number, at: Self.at(1_100))
            #expect(verdict == .ignored)
        }
        #expect(selector.ssrc == 2)
    }

    @Test("A stream that has given way takes over again with the fifth new packet in a row")
    func back() {
        var selector = Self.changed()
        let verdicts = (UInt16(150)..<156).map { number in
            selector.receive(ssrc: 1, sequenceNumber: number, at: Self.at(1_020 + Int64(number) * 20))
        }
        #expect(verdicts == [.ignored, .ignored, .ignored, .ignored, .takesOver, .current(isNewest: true)])
    }

    @Test("Of two streams that alternate, the second to come counts, and nothing changes any more")
    func alternating() {
        var selector = Self.changed()
        for number in UInt16(0)..<500 {
            let time = Self.at(1_020 + Int64(number) * 20)
            // Now one packet of the other, now four.
            for copy in 0..<UInt16(number % 2 == 0 ? 1 : 4) {
                let verdict = selector.receive(ssrc: 1, sequenceNumber: 150 + number * 4 + copy, at: time)
                #expect(verdict == .ignored)
            }
            let verdict = selector.receive(ssrc: 2, sequenceNumber: 9_001 + number, at: time)
            #expect(verdict == .current(isNewest: true))
        }
    }

    @Test("A stream that was begun again, with a number far behind or after a silence, takes over after five packets")
    func restarted() {
        for (number, time) in [(UInt16(60_000), Int64(1_100)), (120, 30_000)] {
            var selector = Self.changed()
            let verdicts = (0..<5).map { step in
                selector.receive(ssrc: 1, sequenceNumber: number + UInt16(step), at: Self.at(time + Int64(step) * 20))
            }
            #expect(verdicts.last == .takesOver)
        }
    }

    @Test("Ever new streams, packet after packet, do not replace each other more than once a second")
    func shower() {
        var selector = StreamSelector()
        var changes = 0
        for number in UInt32(0)..<500 {
            let verdict = selector.receive(
                ssrc: 1_000 + number, sequenceNumber: UInt16(number), at: Self.at(Int64(number) * 20))
            if verdict == .takesOver { changes += 1 }
        }
        #expect((10...11).contains(changes))
    }
}
