import RTP
import Testing
import Core

@Suite("Loss and congestion")
struct CongestionTests {
    private func second(_ value: Int64) -> Instant { Instant(nanoseconds: value * 1_000_000_000) }

    private func interval(
        highest: UInt32, lost: Int = 0, roundTrip: Int64? = 100, packets: Int64 = 250
    ) -> CircuitBreaker.Interval {
        .init(
            highestSequence: highest, fractionLost: UInt8(lost), roundTripNanoseconds: roundTrip.map { $0 * 1_000_000 },
            packetsSent: packets)
    }

    @Test("Three intervals without a report trip the breaker, and not while nothing is sent")
    func missingReports() {
        var breaker = CircuitBreaker(.init())
        #expect(breaker.nextDeadline == nil)
        breaker.check(at: second(100))
        #expect(breaker.trip == nil)
        breaker.started(at: second(100))
        #expect(breaker.nextDeadline == second(115))
        breaker.check(at: second(114))
        #expect(breaker.trip == nil)
        breaker.reported(interval(highest: 1), at: second(110))
        breaker.paused()
        breaker.check(at: second(500))
        #expect(breaker.trip == nil)
        breaker.started(at: second(500))
        breaker.check(at: second(515))
        #expect(breaker.trip == .reportsMissing && breaker.nextDeadline == nil)
        var lenient = CircuitBreaker.Configuration()
        lenient.needsReports = false
        var silent = CircuitBreaker(lenient)
        silent.started(at: .zero)
        silent.check(at: second(1_000))
        #expect(silent.trip == nil)
    }

    @Test(
        "Reports that show no progress trip it after five (RFC 8083 §4.2), and one of progress starts the count again"
    )
    func standstill() {
        var breaker = CircuitBreaker(.init())
        breaker.started(at: .zero)
        for (index, highest) in [5, 5, 5, 5, 5, 9, 9, 9, 9, 9, 9].enumerated() {
            #expect(breaker.trip == nil)
            breaker.reported(interval(highest: UInt32(highest)), at: second(Int64(index) * 5 + 5))
        }
        #expect(breaker.trip == .mediaNotArriving)
        // On hold nothing is sent, so nothing need arrive.
        var held = CircuitBreaker(.init())
        held.started(at: .zero)
        for index in 1...10 { held.reported(interval(highest: 5, packets: 0), at: second(Int64(index) * 5)) }
        #expect(held.trip == nil)
    }

    @Test(
        "Ten times TCP's share trips it; speech at common losses is far from that",
        arguments: [
            // Loss in 1/256, round trip in ms, whether it trips. 50 packets a second: 10 × fair is R × 50 × √(2p / 3) = 10.
            (26, 100, false), (128, 300, false), (128, 340, false), (128, 350, true), (26, 760, false), (26, 770, true),
            (0, 9_000, false),
        ])
    func congestion(lost: Int, roundTrip: Int64, trips: Bool) {
        var breaker = CircuitBreaker(.init())
        breaker.started(at: .zero)
        for index in 1...3 {
            #expect(breaker.trip == nil)
            breaker.reported(
                interval(highest: UInt32(index), lost: lost, roundTrip: roundTrip), at: second(Int64(index) * 5))
        }
        #expect(breaker.trip == (trips ? .congestion : nil))
    }

    @Test("Short intervals need more reports of congestion in a row, long ones fewer")
    func intervalCounts() {
        func reports(_ milliseconds: Int64) -> Int {
            var breaker = CircuitBreaker(.init(reportIntervalNanoseconds: milliseconds * 1_000_000))
            breaker.started(at: .zero)
            var count = 0
            while breaker.trip == nil, count < 100 {
                count += 1
                breaker.reported(
                    interval(highest: UInt32(count), lost: 128, packets: 1_000),
                    at: Instant(nanoseconds: Int64(count) * milliseconds * 1_000_000))
            }
            return count
        }
        #expect(reports(5_000) == 3)
        #expect(reports(1_000) == 3)
        #expect(reports(100) == 10)
    }
}
