import TestSupport
import Testing

@testable import Playout

@Suite struct TargetDelayTests {
    private static let millisecond: Int64 = 1_000_000

    /// The delay chosen, in milliseconds, after 20 ms packets with these delays.
    private func target(
        after delays: [Double], phase: Int64 = 0, step: Int64 = 20, patience: Int64 = 0,
        _ change: (inout PlayoutConfiguration) -> Void = { _ in }
    ) -> Double {
        var configuration = PlayoutConfiguration()
        change(&configuration)
        var history = ArrivalHistory(memoryMilliseconds: configuration.memoryMilliseconds, longestDelay: 500_000_000)
        var target = TargetDelay(configuration)
        var received: Int64 = 0
        for (index, delay) in delays.enumerated() {
            let transit = Int64(delay * 1e6)
            history.record(
                transit: transit, at: Int64(index) * 20 * Self.millisecond + transit, duration: 20 * Self.millisecond,
                isOvertaken: false)
            received += 20 * Self.millisecond
            let grid = TargetDelay.Grid(
                origin: phase * Self.millisecond, step: step * Self.millisecond, lead: 0,
                patience: patience * Self.millisecond)
            target.update(history, grid, received: received)
        }
        return Double(target.transit - history.baseline) / 1e6
    }

    @Test("On a clean path the target is the first pull after the packet", arguments: [2, 7, 13, 19])
    func clean(phase: Int64) {
        #expect(target(after: Array(repeating: 50, count: 200), phase: 50 + phase) == Double(phase))
    }

    @Test(
        "The target stays at the initial delay for two seconds, and then is free of it at once",
        arguments: [0, 60, 200])
    func initial(delay: Int) {
        func target(after packets: Int) -> Double {
            self.target(after: Array(repeating: 50, count: packets), phase: 55) { $0.initialDelayMilliseconds = delay }
        }
        let first = Double((delay + 14) / 20 * 20 + 5)
        #expect(target(after: 2) == first)
        #expect(target(after: 99) == first)
        #expect(target(after: 101) == 5)
    }

    @Test("Packets for which pulls would wait are no reason for a whole step of delay; those that are later are")
    func patience() {
        func target(_ lateness: Double, patience: Int64) -> Double {
            // Calm while the initial delay lasts and is given up; then one packet in twenty is late.
            let delays = (0..<600).map { $0 > 200 && $0 % 20 == 0 ? 50 + lateness : 50 }
            return self.target(after: delays, phase: 53, patience: patience)
        }
        #expect(target(8, patience: 0) == 23)
        #expect(target(8, patience: 10) == 3)
        #expect(target(13, patience: 10) == 23)
    }

    @Test("The target stays between its minimum and its maximum")
    func bounds() {
        let calm = Array(repeating: 50.0, count: 200)
        #expect(target(after: calm, phase: 50) { $0.minimumDelayMilliseconds = 100 } == 100)
        let wild = (0..<400).map { 50 + Double($0 * 37 % 400) }
        #expect(target(after: wild, phase: 50) { $0.maximumDelayMilliseconds = 120 } <= 120)
    }

    @Test("A higher price on late packets never lowers the target")
    func price() {
        var random = SeededGenerator(seed: 3)
        let delays = (0..<1_000).map { _ in 50 + Double.random(in: 0...1, using: &random) * 90 }
        let targets = [2, 5, 10, 20, 50].map { price in
            target(after: delays, phase: 50) { $0.millisecondsPerLatePercent = price }
        }
        #expect(targets == targets.sorted())
        #expect(targets.last ?? 0 >= 80)
    }

    @Test("The target adapts both ways")
    func adapts() {
        let bad = (0..<500).map { 50 + Double($0 * 7 % 100) }
        let high = target(after: bad, phase: 50)
        let low = target(after: bad + Array(repeating: 50, count: 5_000), phase: 57)
        #expect(high >= 80)
        #expect(low == 7)
    }

    @Test("Pulls that are close together leave a small delay to be won, which is won once the path has been calm")
    func smallStep() {
        let bad = (0..<300).map { $0 % 10 == 0 ? 62.0 : 50 }
        #expect(target(after: bad, phase: 55, step: 10) == 15)
        #expect(target(after: bad + Array(repeating: 50, count: 3_000), phase: 55, step: 10) == 5)
    }

    @Test("A path that becomes slower for good is a new baseline, not jitter")
    func newPath() {
        #expect(target(after: Array(repeating: 50, count: 300) + Array(repeating: 150, count: 1_500), phase: 55) <= 25)
    }

    @Test("A stream's first packet is learnt from, and is no stall, although the clocks of both ends differ by hours")
    func firstPacket() {
        var history = ArrivalHistory(memoryMilliseconds: 15_000, longestDelay: 500_000_000)
        let transit: Int64 = 10_000_000 * Self.millisecond
        history.record(transit: transit, at: transit, duration: 20 * Self.millisecond, isOvertaken: false)
        #expect(history.count == 1 && history.baseline == transit)
    }

    @Test("Late packets weigh by their share, and more in a long gap than one by one", arguments: [true, false])
    func lateness(isOvertaken: Bool) {
        var history = ArrivalHistory(memoryMilliseconds: 60_000, longestDelay: 500_000_000)
        for index in 0..<2_000 {
            let delay: Int64 = index % 100 == 50 ? 40 : 0
            history.record(
                transit: delay * Self.millisecond, at: Int64(index) * 20 * Self.millisecond,
                duration: 20 * Self.millisecond, isOvertaken: isOvertaken)
        }
        let expected: Float = isOvertaken ? 0.028 : 0.01 * (1 + 20.0 / 14)
        #expect(abs(history.lateness(delay: 20 * Self.millisecond) - expected) < 0.002)
        #expect(history.lateness(delay: 45 * Self.millisecond) < 0.001)
    }
}
