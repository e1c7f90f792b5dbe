import Playout
import TestSupport
import Testing

@Suite struct ImpairedCallTests {
    private func call(_ change: (inout SimulatedCall) -> Void) -> SimulatedCall {
        var call = SimulatedCall()
        change(&call)
        return call
    }

    /// Longer than sequence numbers last, which begin again after 22 minutes at 20 ms a packet.
    private static let long = 1_500

    @Test("A long call on a clean path plays every packet at the first pull after it came")
    func clean() throws {
        let statistics = try call { $0.configuration.initialDelayMilliseconds = 0 }.run(seconds: Self.long).statistics
        #expect(statistics.samplesConcealed == 0)
        #expect(statistics.packetsLost == 0)
        #expect(statistics.packetsLate == 0)
        #expect(abs(statistics.meanDelayMilliseconds - 7) < 0.5)
    }

    @Test("In a long call with a clock 1500 ppm fast or slow, delay does not grow", arguments: [-1_500.0, 1_500])
    func drift(ppm: Double) throws {
        let result = try call { $0.network.clockDriftPPM = ppm }.run(seconds: Self.long)
        let statistics = result.statistics
        #expect(statistics.concealedShare < 0.002)
        #expect(statistics.packetsDiscarded == 0)
        #expect(result.seconds.dropFirst(5).allSatisfy { $0.playoutDelayMilliseconds < 70 })
        let corrected =
            Double(statistics.samplesAccelerated - statistics.samplesDecelerated) / Double(Self.long * 48_000)
        #expect(abs(corrected - ppm / 1e6) < 0.000_3)
    }

    @Test(
        "Any packet length with any pull length is played whole on a clean path", arguments: [10, 20, 40, 60],
        [10, 20, 40, 60])
    func frameSizes(packet: Int, pull: Int) throws {
        let statistics = try call {
            $0.packetMilliseconds = packet
            $0.pullMilliseconds = pull
        }.run(seconds: 20).statistics
        #expect(statistics.samplesConcealed == 0)
        #expect(statistics.packetsLate == 0)
        #expect(statistics.packetsReceived * packet > 19_000)
        #expect(statistics.meanDelayMilliseconds < Double(20 + max(packet, pull)))
    }

    @Test("With Wi-Fi jitter little is concealed, and the delay follows the path", arguments: 1...4)
    func wifi(seed: UInt64) throws {
        let result = try call {
            $0.network.jitter = .wifi(meanMilliseconds: 17)
            $0.seed = seed
        }.run(seconds: 120)
        #expect(result.statistics.concealedShare < 0.015)
        #expect(result.statistics.meanDelayMilliseconds < 110)
    }

    @Test("When a bad path turns good, the delay comes down again")
    func adaptsDown() throws {
        let result = try call {
            $0.network.jitter = .lte(meanMilliseconds: 37)
            $0.network.jitterEndsAtMilliseconds = 30_000
        }.run(seconds: 120)
        #expect(result.seconds[25].playoutDelayMilliseconds > 60)
        #expect(result.seconds[115].playoutDelayMilliseconds < 30)
    }

    @Test("In bursty loss what FEC can restore is restored, and each lost packet is counted once")
    func burstyLoss() throws {
        let result = try call {
            $0.network.loss = .bursts(share: 0.1, meanLength: 1.5)
            $0.expectedLossPercent = 20
        }.run(seconds: 300)
        let statistics = result.statistics
        #expect(abs(statistics.packetsLost - result.lost) <= 3)
        #expect(statistics.samplesRecovered > statistics.samplesConcealed / 3)
        let bridged = statistics.samplesRecovered + statistics.samplesConcealed
        #expect(abs(Double(bridged) / Double(result.lost * 960) - 1) < 0.1)
    }

    @Test("Overtaken packets are put back in their place, and few are too late")
    func reordering() throws {
        let result = try call { $0.network.reorderedShare = 0.05 }.run(seconds: 300)
        #expect(result.statistics.packetsReordered > 300)
        #expect(result.statistics.packetsLate < result.statistics.packetsReceived / 50)
        #expect(result.statistics.packetsLost < result.statistics.packetsReceived / 50)
    }

    @Test(
        "With 60 ms to begin with, overtaken packets are in time before anything is known of the path", arguments: 1...8
    )
    func reorderingAtOnce(seed: UInt64) throws {
        let result = try call {
            $0.configuration.initialDelayMilliseconds = 60
            $0.network.reorderedShare = 0.1
            $0.seed = seed
        }.run(seconds: 2)
        #expect(result.statistics.packetsReordered > 0)
        #expect(result.statistics.samplesConcealed == 0)
    }

    @Test("Duplicates are counted and change nothing that is heard")
    func duplicates() throws {
        let plain = try call { $0.keepsOutput = true }.run(seconds: 10)
        let doubled = try call {
            $0.keepsOutput = true
            $0.network.duplicatedShare = 0.3
        }.run(seconds: 10)
        #expect(doubled.duplicated > 50)
        #expect(abs(doubled.statistics.packetsDuplicate - doubled.duplicated) <= 1)
        let isSame = doubled.output == plain.output
        #expect(isSame)
    }

    @Test("After stalls the burst is played, not dropped, and the delay stays below the stall's length")
    func stalls() throws {
        let result = try call {
            $0.network.stallEveryMilliseconds = 5_000
            $0.network.stallMilliseconds = 200
        }.run(seconds: 120)
        #expect(result.statistics.packetsDiscarded == 0)
        #expect(result.statistics.packetsLost == 0)
        #expect(result.statistics.concealedShare < 0.02)
        #expect(result.seconds.dropFirst(10).allSatisfy { $0.playoutDelayMilliseconds < 260 })
    }

    @Test("An outage is concealed, then silent, and a second after it the delay is what it was")
    func outage() throws {
        let result = try call { $0.network.outages = [10_000...15_000] }.run(seconds: 30)
        let silent = result.seconds[14].samplesSilent - result.seconds[10].samplesSilent
        #expect(silent > 150_000)
        #expect(abs(result.seconds[17].playoutDelayMilliseconds - result.seconds[8].playoutDelayMilliseconds) < 25)
        #expect(result.statistics.packetsLost == 251)
    }

    @Test("Where sequence numbers and timestamps wrap around, nothing is heard of it")
    func wrapAround() throws {
        let plain = try call { $0.keepsOutput = true }.run(seconds: 20)
        let wrapping = try call {
            $0.keepsOutput = true
            $0.firstSequence = .max - 300
            $0.firstTimestamp = .max - 300_000
        }.run(seconds: 20)
        let isSame = wrapping.output == plain.output
        #expect(isSame)
        #expect(wrapping.statistics.resets == 0)
    }

    @Test("Everything at once in a long call: bounded delay, every sample accounted for")
    func everything() throws {
        let result = try call {
            $0.expectedLossPercent = 10
            $0.network = .with {
                $0.jitter = .wifi(meanMilliseconds: 12)
                $0.loss = .bursts(share: 0.05, meanLength: 2)
                $0.reorderedShare = 0.01
                $0.duplicatedShare = 0.01
                $0.stallEveryMilliseconds = 30_000
                $0.stallMilliseconds = 300
                $0.outages = [600_000...602_000]
                $0.clockDriftPPM = 100
            }
        }.run(seconds: Self.long)
        let statistics = result.statistics
        #expect(statistics.samplesPlayed == Self.long * 48_000)
        #expect(statistics.concealedShare < 0.06)
        #expect(statistics.resets == 0)
        #expect(result.seconds.dropFirst(5).allSatisfy { $0.playoutDelayMilliseconds < 700 })
    }
}
