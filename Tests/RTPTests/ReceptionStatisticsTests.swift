import TestSupport
import Testing
import Core

@testable import RTP

@Suite("Reception statistics")
struct ReceptionStatisticsTests {
    private func header(_ sequence: UInt16, _ timestamp: UInt32 = 0) -> RTPHeader {
        RTPHeader(payloadType: 111, sequenceNumber: sequence, timestamp: timestamp, ssrc: 7)
    }

    @Test("Loss is counted since the beginning and since the last report (RFC 3550 A.3)")
    func loss() {
        var statistics = ReceptionStatistics()
        for sequence in 65_530...65_539 where sequence % 4 != 0 {
            _ = statistics.receive(header(UInt16(truncatingIfNeeded: sequence)), at: .zero)
        }
        #expect(statistics.packetsExpected == 10)
        #expect(statistics.packetsReceived == 8)
        let first = statistics.makeReport(on: 7)
        #expect(first.cumulativeLost == 2)
        #expect(first.fractionLost == 2 * 256 / 10)
        #expect(first.extendedHighestSequence == 65_539)

        for sequence in 4...7 { _ = statistics.receive(header(UInt16(sequence)), at: .zero) }
        let second = statistics.makeReport(on: 7)
        #expect(second.fractionLost == 0)
        #expect(second.cumulativeLost == 2)
    }

    @Test("Repeated packets make the loss negative and the fraction zero")
    func duplicates() {
        var statistics = ReceptionStatistics()
        for sequence: UInt16 in [1, 1, 1, 2] { _ = statistics.receive(header(sequence), at: .zero) }
        let report = statistics.makeReport(on: 7)
        #expect(report.cumulativeLost == -2)
        #expect(report.fractionLost == 0)
    }

    @Test("A fraction of one is reported as 255, for 256 does not fit")
    func everythingLost() {
        var statistics = ReceptionStatistics()
        _ = statistics.receive(header(1), at: .zero)
        _ = statistics.makeReport(on: 7)
        _ = statistics.receive(header(2_900), at: .zero)
        #expect(statistics.makeReport(on: 7).fractionLost == 255)
    }

    @Test("A far jump is not counted until the next packet confirms it; then the stream restarts (A.1)")
    func restart() {
        var statistics = ReceptionStatistics()
        _ = statistics.receive(header(100), at: .zero)
        #expect(statistics.receive(header(30_000), at: .zero).outcome == .outOfPlace)
        #expect(statistics.receive(header(101), at: .zero).outcome == .counted)
        #expect(statistics.receive(header(30_000), at: .zero).outcome == .outOfPlace)
        #expect(statistics.receive(header(30_001), at: .zero).outcome == .restarted)
        #expect(statistics.packetsReceived == 1)
        #expect(statistics.restarts == 1)
        #expect(statistics.cumulativeLost == 0)
    }

    @Test("Sequence numbers are extended across wraps, and continue where a stream is restarted")
    func numbers() {
        var statistics = ReceptionStatistics()
        let sent: [UInt16] = [65_534, 65_535, 1, 0, 65_533, 2, 40_000, 40_001, 39_999, 30_000, 3, 30_000, 30_001]
        let numbers = sent.map { statistics.receive(header($0), at: .zero).number }
        #expect(
            numbers == [
                65_534, 65_535, 65_537, 65_536, 65_533, 65_538, 105_536, 105_537, 105_535, 161_072, 131_075, 161_072,
                161_073,
            ])
        #expect(statistics.restarts == 2)
        #expect(statistics.extendedHighestSequence == 161_073)
    }

    @Test(
        "A packet that the very first ones have overtaken across a wrap comes before them, and no other number is negative"
    )
    func beforeTheFirst() {
        var statistics = ReceptionStatistics()
        #expect(statistics.receive(header(1), at: .zero).number == 1)
        #expect(statistics.receive(header(65_535), at: .zero) == .init(.counted, number: -1))
        #expect(statistics.receive(header(64_000), at: .zero) == .init(.outOfPlace, number: 64_000))
    }

    @Test("On probation a stream counts from its second packet in sequence (A.1)")
    func probation() {
        var statistics = ReceptionStatistics(packetsOnProbation: 2)
        #expect(statistics.receive(header(10), at: .zero).outcome == .onProbation)
        #expect(statistics.receive(header(500), at: .zero).outcome == .onProbation)
        #expect(!statistics.isStarted)
        #expect(statistics.receive(header(501), at: .zero).outcome == .counted)
        #expect(statistics.packetsExpected == 1)
        #expect(statistics.packetsReceived == 1)
    }

    @Test("An even stream has no jitter, however long it runs")
    func noJitter() {
        var statistics = ReceptionStatistics()
        for index in 0..<200_000 {
            let arrival = Instant(nanoseconds: 200_000_000_000_000 + Int64(index) * 20_000_000)
            _ = statistics.receive(
                header(UInt16(truncatingIfNeeded: index), UInt32(truncatingIfNeeded: index &* 960)), at: arrival)
        }
        #expect(statistics.jitterTicks == 0)
        #expect(statistics.packetsReceived == 200_000)
    }

    @Test("Jitter follows A.8: every second packet 10 ms late settles at 480 ticks")
    func jitter() {
        var statistics = ReceptionStatistics()
        for index in 0..<500 {
            let late: Int64 = index % 2 == 1 ? 10_000_000 : 0
            let arrival = Instant(nanoseconds: Int64(index) * 20_000_000 + late)
            _ = statistics.receive(header(UInt16(index), UInt32(index * 960)), at: arrival)
        }
        #expect((470...480).contains(statistics.jitterTicks))
        #expect((9_700_000...10_000_000).contains(statistics.jitterNanoseconds))
    }

    @Test("Random headers and times never trap")
    func randomInput() {
        var generator = SeededGenerator(seed: 4)
        var statistics = ReceptionStatistics(packetsOnProbation: 2)
        for _ in 0..<20_000 {
            let arrival = Instant(nanoseconds: .random(in: .min ... .max, using: &generator))
            _ = statistics.receive(
                header(.random(in: 0...9_000, using: &generator), .random(in: 0...UInt32.max, using: &generator)),
                at: arrival)
            let report = statistics.makeReport(on: 7)
            #expect((-0x80_0000...0x7F_FFFF).contains(report.cumulativeLost))
        }
    }
}
