import Testing

@testable import Playout

@Suite struct TimeStretchTests {
    /// A buffer of a steady wave of `period` samples: played history and `waiting` samples.
    private func buffer(period: Int, waiting: Int) -> SyncBuffer {
        var buffer = SyncBuffer()
        Self.fill(&buffer, period, from: 0, SyncBuffer.history)
        var played = [Int16](repeating: 0, count: SyncBuffer.history)
        var span = played.mutableSpan
        buffer.take(into: &span)
        Self.fill(&buffer, period, from: SyncBuffer.history, waiting)
        return buffer
    }

    private static func fill(_ buffer: inout SyncBuffer, _ period: Int, from start: Int, _ count: Int) {
        write(&buffer, count) { offset in
            let phase = (start + offset) % period
            return (phase < period / 2 ? phase : period - phase) * 16_000 / period - 4_000
        }
        buffer.append(count)
    }

    private static func write(_ buffer: inout SyncBuffer, _ count: Int, _ value: (Int) -> Int) {
        var room = buffer.room
        for index in 0..<count { room[index] = Int16(truncatingIfNeeded: value(index)) }
    }

    /// The largest step between neighbouring samples, from the last played one on.
    private func largestStep(_ buffer: borrowing SyncBuffer) -> Int {
        var largest = 0
        for index in 0..<buffer.count { largest = max(largest, abs(Int(buffer[index]) - Int(buffer[index - 1]))) }
        return largest
    }

    @Test("Speeding up takes out whole periods, and leaves no click", arguments: [160, 300, 431, 600])
    func accelerate(period: Int) {
        var buffer = buffer(period: period, waiting: 960)
        let removed = TimeStretch.accelerate(&buffer, atMost: 720, threshold: 0.9)
        #expect(removed > 0 && removed % period == 0)
        #expect(buffer.count == 960 - removed)
        #expect(largestStep(buffer) <= 32_000 / period + 2)
    }

    @Test("Slowing down puts in whole periods, and leaves no click", arguments: [160, 300, 431, 600])
    func decelerate(period: Int) {
        var buffer = buffer(period: period, waiting: 960)
        let added = TimeStretch.decelerate(&buffer, atLeast: 0, threshold: 0.9)
        #expect(added > 0 && added % period == 0)
        #expect(buffer.count == 960 + added)
        #expect(largestStep(buffer) <= 32_000 / period + 2)
    }

    @Test("A stretch never takes more than it may, nor gives less than it must")
    func limits() {
        for limit in stride(from: 120, through: 720, by: 75) {
            var shorter = buffer(period: 330, waiting: 960)
            #expect((1...limit).contains(TimeStretch.accelerate(&shorter, atMost: limit, threshold: -1)))
            var longer = buffer(period: 330, waiting: 240)
            #expect((limit...720).contains(TimeStretch.decelerate(&longer, atLeast: limit, threshold: -1)))
        }
    }

    @Test("With too little sound nothing is stretched, and nothing traps")
    func tooLittle() {
        for waiting in 0..<360 {
            var short = buffer(period: 200, waiting: waiting)
            #expect(TimeStretch.accelerate(&short, atMost: 720, threshold: -1) <= max(waiting - 240, 0))
            var shorter = buffer(period: 200, waiting: min(waiting, 239))
            #expect(TimeStretch.decelerate(&shorter, atLeast: 0, threshold: -1) == 0)
        }
    }

    @Test("Where the sound never repeats, a strict threshold refuses to cut")
    func refuses() {
        var buffer = SyncBuffer()
        var state: UInt32 = 1
        Self.write(&buffer, 960) { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return Int(state >> 16)
        }
        buffer.append(960)
        #expect(TimeStretch.accelerate(&buffer, atMost: 720, threshold: 0.9) == 0)
        #expect(buffer.count == 960)
    }

    @Test("What was made up provisionally fades into what comes, and disappears if nothing of it is used")
    func provisional() {
        var buffer = SyncBuffer()
        Self.write(&buffer, 480) { _ in 1_000 }
        buffer.appendProvisional(480)
        #expect(buffer.count == 0)
        buffer.settle(200)
        Self.write(&buffer, 960) { _ in 2_000 }
        buffer.append(960, dropping: 100)
        #expect(buffer.count == 200 + 860)
        #expect(buffer.provisional == 0)
        #expect(buffer[199] == 1_000)
        #expect((1_400...1_600).contains(buffer[200 + 120]))
        #expect(buffer[200 + 240] == 2_000)
    }
}
