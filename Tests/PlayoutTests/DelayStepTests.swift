import AudioKit
import TestSupport
import Testing
import Core

@testable import Playout

/// Streams of µ-law that become later in one step: the sender was silent without counting its timestamps on, or the
/// path has become longer.
@Suite struct DelayStepTests {
    /// One call in virtual time: three seconds of sound, the step, and three seconds in which every 100 ms have their
    /// own frequency.
    struct StepCall {
        var packetMilliseconds: Int
        var stepMilliseconds: Int
        var pullMilliseconds = 20
        /// Of what is sent before the step, so much does not come.
        var lostMilliseconds = 0
        var jitterMilliseconds = 0.0
        /// Behind the step the path is as it was before.
        var isStall = false

        static let beforeMilliseconds = 3_000
        static let toneMilliseconds = 100
        static let tones = 30

        struct Result {
            var statistics = PlayoutStatistics()
            /// Concealed, silent or stretched samples from when the first packet behind the step came.
            var damaged = 0
            /// Milliseconds of each tone that were heard.
            var heard = [Int](repeating: 0, count: StepCall.tones)
            /// Delay of the last second, above the fastest path.
            var delayMilliseconds = 0.0
        }

        static func frequency(_ tone: Int) -> Double { 400 + 90 * Double(tone) }

        /// The sample at 8 kHz so far from the beginning.
        private static func sample(_ index: Int, _ phase: inout Double) -> Int16 {
            let tone = (index / 8 - beforeMilliseconds) / toneMilliseconds
            phase += (index / 8 < beforeMilliseconds ? 300 : frequency(tone)) / 8_000
            phase -= phase.rounded(.down)
            // A triangle crosses zero where a sine does.
            return Int16((phase < 0.25 ? phase : phase < 0.75 ? 0.5 - phase : phase - 1) * 32_000)
        }

        private func packets() -> [[UInt8]] {
            let total = (Self.beforeMilliseconds + Self.tones * Self.toneMilliseconds) / packetMilliseconds
            var phase = 0.0
            return (0..<total).map { packet in
                (0..<packetMilliseconds * 8).map { offset in
                    G711.muLawByte(Self.sample(packet * packetMilliseconds * 8 + offset, &phase))
                }
            }
        }

        /// When each packet comes, in nanoseconds; nil if it does not.
        private func arrivals(_ count: Int) -> [Int64?] {
            var random = SeededGenerator(seed: 3)
            var newest = Int64.min
            return (0..<count).map { index in
                let sent = index * packetMilliseconds
                if sent < Self.beforeMilliseconds, sent >= Self.beforeMilliseconds - lostMilliseconds { return nil }
                var delay =
                    20 + (jitterMilliseconds > 0 ? Double.random(in: 0...jitterMilliseconds, using: &random) : 0)
                if sent >= Self.beforeMilliseconds {
                    let since = Double(sent - Self.beforeMilliseconds)
                    delay += isStall ? max(0, Double(stepMilliseconds) - since) : Double(stepMilliseconds)
                }
                newest = max(newest, Int64((Double(sent + packetMilliseconds) + delay) * 1e6))
                return newest
            }
        }

        func run() -> Result {
            let packets = packets()
            let arrivals = arrivals(packets.count)
            var buffer = PlayoutBuffer(
                configuration: PlayoutConfiguration(), stream: StreamDecoder(G711Decoder(.muLaw)))
            var (result, next, now) = (Result(), 0, Int64(7_000_000))
            let isBehind = Self.beforeMilliseconds / packetMilliseconds
            var output: [Int16] = []
            var frame = [Int16](repeating: 0, count: pullMilliseconds * 48)
            let end = Int64((packets.count * packetMilliseconds + stepMilliseconds + 100) * 1_000_000)
            while now < end {
                while next < packets.count, arrivals[next] ?? now <= now {
                    if let arrival = arrivals[next] {
                        let packet = packets[next]
                        buffer.insert(
                            payload: packet.span.bytes, number: Int64(next),
                            timestamp: UInt32(next * packetMilliseconds * 8), marker: false, ssrc: 1,
                            arrival: Instant(nanoseconds: arrival))
                    }
                    next += 1
                }
                var room = frame.mutableSpan
                let pulled = buffer.pull(into: &room, at: Instant(nanoseconds: now))
                if next > isBehind {
                    output += frame
                    if next < packets.count {
                        result.damaged += pulled.concealedSamples + pulled.silentSamples + abs(pulled.stretchedSamples)
                    }
                }
                now += Int64(pullMilliseconds) * 1_000_000
            }
            result.statistics = buffer.statistics
            result.delayMilliseconds = Double(buffer.statistics.playoutDelayNanoseconds) / 1e6
            Self.listen(to: output, &result)
            return result
        }

        /// Finds the tone of every 10 ms by when it crosses zero.
        private static func listen(to output: [Int16], _ result: inout Result) {
            for start in stride(from: 0, to: output.count - 960, by: 480) {
                var (first, last, count) = (0.0, 0.0, 0)
                for index in start..<(start + 959) where output[index] < 0 && output[index + 1] >= 0 {
                    let (low, high) = (Double(output[index]), Double(output[index + 1]))
                    last = Double(index) - low / (high - low)
                    if count == 0 { first = last }
                    count += 1
                }
                guard count > 2 else { continue }
                let frequency = Double(count - 1) * 48_000 / (last - first)
                let tone = Int(((frequency - 400) / 90).rounded())
                if (0..<tones).contains(tone), abs(frequency - Self.frequency(tone)) < 20 { result.heard[tone] += 10 }
            }
        }
    }

    @Test(
        "After a pause without timestamps, or on a path that became longer at once, all sound is heard",
        arguments: [20, 30, 40, 60], [300, 600, 1_000, 2_000, 3_500])
    func step(packet: Int, step: Int) {
        let result = StepCall(packetMilliseconds: packet, stepMilliseconds: step).run()
        #expect(result.heard.allSatisfy { $0 >= 50 }, "\(result.heard)")
        #expect(result.damaged <= 48 * 250, "\(result.damaged / 48) ms")
        #expect(result.statistics.packetsDiscarded == 0 && result.statistics.packetsLate == 0)
        #expect(result.statistics.packetsLost == 0)
        #expect(result.delayMilliseconds < 80)
    }

    @Test(
        "So it is with jitter, lost packets and other pulls", arguments: [10, 20, 60], [20, 30, 40, 60])
    func unevenStep(pull: Int, packet: Int) {
        let call = StepCall(
            packetMilliseconds: packet, stepMilliseconds: 800, pullMilliseconds: pull, lostMilliseconds: 240,
            jitterMilliseconds: 8)
        let result = call.run()
        #expect(result.heard.allSatisfy { $0 >= 50 }, "\(result.heard)")
        #expect(result.statistics.packetsDiscarded == 0)
        #expect(result.statistics.packetsLost == 240 / packet)
        #expect(result.delayMilliseconds < 140)
    }

    @Test("Behind a stall what waits beyond the maximum delay is discarded and counted", arguments: [20, 30, 40, 60])
    func stall(packet: Int) {
        let result = StepCall(packetMilliseconds: packet, stepMilliseconds: 1_500, isStall: true).run()
        let discarded = result.statistics.packetsDiscarded * packet
        #expect((800...1_100).contains(discarded), "\(discarded) ms")
        #expect(result.heard.suffix(10).allSatisfy { $0 >= 50 })
    }

    /// The lateness of packets of 20 ms above the fastest path, after `calm` packets without any.
    private func isStep(_ lateness: [Double], calm: Int = 50) -> Bool {
        var detector = StepDetector()
        var (isStep, newest) = (false, Int64.min)
        for (index, late) in ([Double](repeating: 0, count: calm) + lateness).enumerated() {
            let media = Int64(index) * 20_000_000
            newest = max(newest, media + Int64(late * 1e6))
            if detector.record(transit: newest - media, at: newest, above: 0) != nil { isStep = true }
        }
        return isStep
    }

    @Test("A step is one if nothing behind it catches up, and neither a stall, nor jitter, nor a queue that grows is")
    func detection() {
        #expect(isStep(Array(repeating: 250, count: 10)))
        #expect(isStep([270, 250, 258, 251, 249, 260, 255, 252]))
        #expect(!isStep(Array(repeating: 250, count: 4)), "not for certain")
        #expect(!isStep([300, 300, 0, 0, 0, 0]), "two late packets")
        #expect(!isStep(Array(repeating: 190, count: 50)), "too small")
        #expect(!isStep((0..<50).map { max(0, 800 - 20 * Double($0)) }), "a burst")
        #expect(!isStep((0..<80).map { max(0, 800 - 10 * Double($0)) }), "a burst at twice the pace")
        #expect(!isStep((0..<200).map { min(800, 8 * Double($0)) }), "a queue that grows")
        #expect(!isStep((0..<50).map { $0 % 5 == 0 ? 250 : 0 }), "spikes")
    }

    @Test("A path that is longer for two seconds and then as before leaves the delay as it was")
    func detour() {
        var estimator = DelayEstimator(PlayoutConfiguration())
        let queue = PacketQueue()
        var targets: [Int64] = []
        for index in 0..<600 {
            let late: Int64 = (200..<300).contains(index) ? 620 : 20
            var entry = PacketStore.Entry()
            entry.sequence = Int64(index)
            entry.timestamp = Int64(index) * 960
            entry.samples = 960
            entry.arrivalNanoseconds = (Int64(index) * 20 + late) * 1_000_000
            estimator.learn(from: entry, missing: 0, queue, repairNanoseconds: nil)
            let grid = TargetDelay.Grid(origin: 0, step: 20_000_000, lead: 0)
            estimator.update(grid, received: Int64(index) * 20_000_000)
            targets.append((estimator.targetTransit - estimator.baseline) / 1_000_000)
        }
        #expect(estimator.baseline == 20_000_000)
        #expect(
            targets[190] < 40 && targets[280] < 40 && targets[350] < 40,
            "\(targets[190]) \(targets[280]) \(targets[350])")
        #expect(targets[599] < 40)
    }
}
