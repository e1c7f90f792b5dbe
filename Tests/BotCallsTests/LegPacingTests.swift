import Foundation
import Testing

@testable import BotCalls

/// Two legs in virtual time: every 20 ms one gives a piece, and some time later the other takes one.
@Suite("The delay between two media legs")
struct LegPacingTests {
    fileprivate static let piece = 960

    private struct Queue {
        var pacing = LegPacing(most: 480_000)
        var samples: [Int16] = []
        var taken: [Int16] = []
        var gaps = 0

        mutating func give(_ piece: [Int16]) { samples += pacing.take(piece, waiting: samples.count) }

        mutating func take() {
            let count = min(LegPacingTests.piece, samples.count)
            if count < LegPacingTests.piece, !taken.isEmpty { gaps += 1 }
            taken += samples.prefix(count)
            samples.removeFirst(count)
        }
    }

    private static func tone(_ number: Int) -> [Int16] {
        (0..<piece).map { Int16(8_000 * sin(2 * .pi * 440 * Double(number * piece + $0) / 48_000)) }
    }

    private static let pause = [Int16](repeating: 0, count: piece)

    @Test("A steady stream passes whole, 5 ms late, and a piece may be late by as much")
    func steady() {
        var queue = Queue()
        for number in 0..<500 {
            queue.give(Self.tone(number))
            queue.take()
        }
        #expect(queue.gaps == 0 && queue.samples.count == LegPacing.lead)
        #expect(queue.taken.count == 500 * Self.piece)
        let expected = (0..<499).flatMap { Self.tone($0) }
        let isWhole = queue.taken.dropFirst(LegPacing.lead).prefix(expected.count).elementsEqual(expected)
        #expect(isWhole)
    }

    @Test("Of sound that waits because the other leg begins later, pauses are left out until little waits")
    func pauses() {
        var queue = Queue()
        for number in 0..<100 { queue.give(number < 50 ? Self.tone(number) : Self.pause) }
        let greeting = 50 * Self.piece + LegPacing.lead
        #expect(queue.samples.count - greeting <= 5 * Self.piece, "the greeting is kept whole, its pause is not")
        var number = 0
        while queue.samples.count > 2 * Self.piece, number < 1_000 {
            queue.give(Self.pause)
            queue.take()
            number += 1
        }
        #expect(number <= 55)
        while !queue.samples.isEmpty { queue.take() }
        let expected = [Int16](repeating: 0, count: LegPacing.lead) + (0..<50).flatMap { Self.tone($0) }
        let isWhole = queue.taken.prefix(greeting).elementsEqual(expected)
        #expect(isWhole)
    }

    @Test("Sound without pauses catches up by two pieces a second, without clicks")
    func splices() {
        var queue = Queue()
        for number in 0..<25 { queue.give(Self.tone(number)) }
        for number in 25..<1_000 {
            queue.give(Self.tone(number))
            queue.take()
        }
        #expect(queue.gaps == 0 && queue.samples.count < LegPacing.enough + Self.piece)
        let sound = queue.taken.dropFirst(LegPacing.lead)
        // The steepest step of the tone, and of two tones at once.
        let limit = 2 * 8_000 * 2 * Double.pi * 440 / 48_000
        let steepest = zip(sound, sound.dropFirst()).map { abs(Double($1) - Double($0)) }.max() ?? 0
        #expect(steepest < limit, "a step of \(steepest)")
    }

    @Test("A frame that misses its piece adds 5 ms, once, and nothing is left out for it")
    func late() {
        var queue = Queue()
        for number in 0..<100 {
            if number == 50 {
                queue.take()
                queue.give(Self.tone(number))
            } else {
                queue.give(number > 50 ? Self.pause : Self.tone(number))
                queue.take()
            }
        }
        #expect(queue.gaps == 1 && queue.samples.count == LegPacing.lead + Self.piece)
    }

    @Test("More than the bound never waits, and an empty piece is nothing")
    func bound() {
        var pacing = LegPacing(most: 1_000)
        #expect(pacing.take([], waiting: 0).isEmpty)
        #expect(pacing.take(Self.tone(0), waiting: 1_001).isEmpty)
        #expect(!pacing.take(Self.tone(1), waiting: 1_000).isEmpty)
    }
}
