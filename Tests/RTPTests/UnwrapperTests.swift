import RTP
import TestSupport
import Testing

@Suite("Unwrapping")
struct UnwrapperTests {
    @Test("Sequence numbers continue across wraps, for packets in and out of order")
    func sequence() {
        var unwrapper = SequenceUnwrapper()
        let numbers: [UInt16] = [65_534, 65_535, 1, 0, 2, 65_533, 3]
        let extended = numbers.map { unwrapper.unwrap($0) }
        #expect(extended == [65_534, 65_535, 65_537, 65_536, 65_538, 65_533, 65_539])
    }

    @Test("A packet from before the first and across a wrap is below zero")
    func belowZero() {
        var unwrapper = SequenceUnwrapper()
        #expect(unwrapper.unwrap(0) == 0)
        #expect(unwrapper.unwrap(65_535) == -1)
        #expect(unwrapper.peek(1) == 1)
        #expect(unwrapper.unwrap(0) == 0)
    }

    @Test("A long walk with steps of any size below half the range keeps count")
    func longWalk() {
        var generator = SeededGenerator(seed: 3)
        var sequence = SequenceUnwrapper()
        var number: Int64 = 60_000
        for _ in 0..<50_000 {
            #expect(sequence.unwrap(UInt16(truncatingIfNeeded: number)) == number)
            number += .random(in: -32_000...32_767, using: &generator)
        }
    }
}
