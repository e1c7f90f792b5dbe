import RTP
import Testing
import Timekeeping

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

    @Test("Reports that tell of no progress trip it after five (RFC 8083 §4.2), and one of progress begins anew")
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

    @Test(
        "The table of loss: what the encoder is told, and where the bitrate goes",
        arguments: [
            (0, 0, 32_000), (5, 7, 32_000), (13, 10, 32_000), (36, 15, 28_800), (64, 25, 24_000), (128, 30, 16_000),
        ])
    func table(fractionLost: Int, percent: Int, bitrate: Int) {
        var adaptation = LossAdaptation(.init())
        adaptation.reported(fractionLost: UInt8(fractionLost))
        #expect(adaptation.expectedLossPercent == percent && adaptation.bitrateBps == bitrate)
    }

    @Test("It stays within its bounds whatever is reported, falls at once and comes back in steps")
    func recovery() {
        var adaptation = LossAdaptation(.init(minimumBitrateBps: 12_000, maximumBitrateBps: 40_000))
        for _ in 0..<20 { adaptation.reported(fractionLost: 255) }
        #expect(adaptation.bitrateBps == 12_000 && adaptation.expectedLossPercent == 30)
        var bitrates: [Int] = []
        var percents: [Int] = []
        for _ in 0..<40 {
            adaptation.reported(fractionLost: 0)
            bitrates.append(adaptation.bitrateBps)
            percents.append(adaptation.expectedLossPercent)
        }
        #expect(bitrates == bitrates.sorted() && percents == percents.sorted(by: >))
        #expect(bitrates.first == 12_000 && bitrates.last == 40_000 && percents.last == 0)
        let changed = adaptation.reported(fractionLost: 0)
        #expect(!changed)
        let narrow = LossAdaptation(.init(minimumBitrateBps: 90_000, maximumBitrateBps: 20_000))
        #expect(narrow.bitrateBps == 20_000)
    }
}
