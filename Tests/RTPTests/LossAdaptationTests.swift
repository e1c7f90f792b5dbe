import RTP
import TestSupport
import Testing
import Core

@Suite("What loss makes of bitrate and protection")
struct LossAdaptationTests {
    /// A sender of 50 packets a second that is told of them ten times a second, 60 ms later.
    private struct Sender {
        var adaptation: LossAdaptation
        var now = Instant.zero
        private var underway: [(told: Instant, seen: PathObservation)] = []
        var bitrates: [Int] = []

        init(maximumBitrateBps: Int = 40_000) {
            adaptation = LossAdaptation(.init(maximumBitrateBps: maximumBitrateBps))
        }

        /// - Parameter lost: Whether a packet is lost, given what is sent in all in bits per second; and how long the queue is.
        mutating func run(
            seconds: Double, queue: (Int) -> Int64? = { _ in 0 }, lost: (Int) -> Bool
        ) {
            let end = now.advanced(by: .seconds(seconds))
            while now < end {
                let total = 25_600 + adaptation.bitrateBps * (1 + adaptation.redundancyDepth)
                let losses = (0..<5).filter { _ in lost(total) }.count
                underway.append(
                    (
                        now.advanced(by: .milliseconds(160)),
                        PathObservation(
                            received: 5 - losses, lost: losses, oldestSentAt: now, queueNanoseconds: queue(total))
                    ))
                now = now.advanced(by: .milliseconds(100))
                while let first = underway.first, first.told <= now {
                    underway.removeFirst()
                    let sendsTwice = adaptation.redundancyDepth > 0
                    adaptation.observe(first.seen, sendsTwice: sendsTwice, at: first.told)
                }
                bitrates.append(adaptation.bitrateBps)
            }
        }
    }

    @Test("Five minutes of 10 % random loss leave at least 36 of 40 kb/s", arguments: 0..<20)
    func randomLoss(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var sender = Sender()
        sender.run(seconds: 300) { _ in Double.random(in: 0..<1, using: &generator) < 0.1 }
        let mean = sender.bitrates.reduce(0, +) / sender.bitrates.count
        let last = sender.adaptation.bitrateBps
        #expect(last >= 36_000 && mean >= 36_000, "\(last), mean \(mean)")
        #expect(sender.adaptation.expectedLossPercent >= 10)
    }

    @Test("Bursts do not lower the bitrate for long, either", arguments: 0..<20)
    func bursts(seed: Int) {
        var profile = NetworkProfile()
        profile.loss = .bursts(share: 0.1, meanLength: 3)
        var network = SimulatedNetwork(profile, seed: UInt64(seed))
        var sender = Sender()
        let clock = sender.now
        sender.run(seconds: 300) { _ in network.send(at: clock).arrival == nil }
        let mean = sender.bitrates.reduce(0, +) / sender.bitrates.count
        #expect(mean >= 35_000, "\(mean)")
    }

    @Test("Loss of a few percent costs no bitrate at all", arguments: [0.01, 0.02, 0.03])
    func littleLoss(share: Double) {
        var generator = SeededGenerator(seed: 3)
        var sender = Sender()
        sender.run(seconds: 300) { _ in Double.random(in: 0..<1, using: &generator) < share }
        let mean = sender.bitrates.reduce(0, +) / sender.bitrates.count
        #expect(mean > 37_500 && sender.adaptation.bitrateBps == 40_000, "\(mean)")
    }

    @Test(
        "A path that carries 64 kb/s is relieved within 2 s and stays so, whether it has a queue or drops at once",
        arguments: [true, false], [32_000, 40_000, 64_000])
    func narrow(hasQueue: Bool, maximum: Int) {
        var generator = SeededGenerator(seed: 5)
        var sender = Sender(maximumBitrateBps: maximum)
        sender.run(seconds: 5) { _ in false }
        func lost(_ total: Int) -> Bool {
            Double.random(in: 0..<1, using: &generator) < 1 - 56_000 / Double(total)
        }
        // Half of the path is taken by others at once: what the sender may use is less than what it sends.
        sender.run(
            seconds: 2, queue: { total in hasQueue && total > 56_000 ? 200_000_000 : 0 },
            lost: lost)
        let total = 25_600 + sender.adaptation.bitrateBps * (1 + sender.adaptation.redundancyDepth)
        #expect(total <= 58_000, "\(total)")
        var late = (packets: 0, lost: 0)
        sender.run(
            seconds: 60, queue: { total in hasQueue && total > 56_000 ? 200_000_000 : 0 },
            lost: { total in
                let isLost = lost(total)
                late.packets += 1
                late.lost += isLost ? 1 : 0
                return isLost
            })
        #expect(Double(late.lost) / Double(late.packets) < 0.05, "\(late)")
    }

    @Test("A queue that grows lowers the bitrate before anything is lost")
    func growingQueue() {
        var sender = Sender()
        var queue: Int64 = 0
        sender.run(seconds: 3, queue: { _ in 0 }, lost: { _ in false })
        sender.run(
            seconds: 4,
            queue: { total in
                queue = max(queue + Int64(total - 50_000) * 2_000, 0)
                return queue
            }, lost: { _ in false })
        #expect(sender.adaptation.bitrateBps < 28_000, "\(sender.adaptation.bitrateBps)")
    }

    @Test("When a path that was narrow is wide again, the bitrate comes back within half a minute")
    func recovery() {
        var generator = SeededGenerator(seed: 9)
        var sender = Sender()
        sender.run(seconds: 20) { Double.random(in: 0..<1, using: &generator) < 1 - 50_000 / Double($0) }
        #expect(sender.adaptation.bitrateBps < 30_000)
        sender.run(seconds: 30) { _ in false }
        #expect(sender.adaptation.bitrateBps >= 36_000 && sender.adaptation.expectedLossPercent <= 7)
        sender.run(seconds: 60) { _ in false }
        #expect(sender.adaptation.bitrateBps == 40_000 && sender.adaptation.expectedLossPercent == 0)
    }

    @Test("Two packets lost within the first half second are protected against at once")
    func firstSecond() {
        var sender = Sender()
        var count = 0
        sender.run(seconds: 0.5) { _ in
            count += 1
            return count == 8 || count == 13
        }
        #expect(sender.adaptation.expectedLossPercent >= 7)
    }

    @Test("For any report, the bitrate stays where packets can carry forward error correction, and that is asked for")
    func floor() {
        var adaptation = LossAdaptation(.init(maximumBitrateBps: 40_000))
        var now = Instant.zero
        for _ in 0..<200 {
            adaptation.observe(
                PathObservation(received: 1, lost: 4, oldestSentAt: now, queueNanoseconds: 300_000_000), at: now)
            now = now.advanced(by: .milliseconds(100))
            #expect((18_000...40_000).contains(adaptation.bitrateBps))
        }
        #expect(adaptation.bitrateBps == 18_000 && adaptation.expectedLossPercent == 30)
        var low = LossAdaptation(.init(maximumBitrateBps: 20_000))
        low.observe(PathObservation(received: 98, lost: 2, oldestSentAt: .zero), at: .zero)
        #expect(low.expectedLossPercent >= 20, "with less libopus has no room for it at 20 kb/s")
        var least = LossAdaptation(.init(maximumBitrateBps: 12_000))
        for _ in 0..<4 { least.observe(PathObservation(received: 98, lost: 2, oldestSentAt: .zero), at: .zero) }
        #expect(least.bitrateBps == 12_000 && least.redundancyDepth == 1, "copies, for there is none at 12 kb/s")
    }

    @Test("Bounds that change keep what is known of the path")
    func bounds() {
        var adaptation = LossAdaptation(.init(maximumBitrateBps: 40_000))
        adaptation.change(to: .init(maximumBitrateBps: 24_000))
        #expect(adaptation.bitrateBps == 24_000)
        adaptation.change(to: .init(maximumBitrateBps: 48_000))
        #expect(adaptation.bitrateBps == 48_000)
        let narrow = LossAdaptation(.init(minimumBitrateBps: 90_000, maximumBitrateBps: 20_000))
        #expect(narrow.bitrateBps == 20_000)
    }
}
