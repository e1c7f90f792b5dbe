@testable import LoopbackAnalysis
import Testing
import TestSupport

@Suite("Gaps that recur")
struct RecurrenceTests {
    private static func events(_ positions: [Int]) -> [LoopbackEvent] {
        positions.map { LoopbackEvent(kind: .skip, position: $0, holeSamples: 0, delayBefore: 100, delayAfter: 99) }
    }

    @Test(
        "A period is found, to some samples, with one gap missed and another of another cause",
        arguments: [480, 1_024, 48_000])
    func found(_ period: Int) throws {
        var places = (0..<20).map { 30_000 + $0 * period + ($0 * 7) % 5 }
        places.remove(at: 7)
        let recurrence = try #require(Recurrence(Self.events(places)))
        #expect(abs(recurrence.periodSamples - Double(period)) < 1, "\(recurrence)")
        #expect(recurrence.events >= 18)
    }

    @Test("Gaps at random places have no period", arguments: 1...50)
    func random(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let places = (0..<12).map { _ in Int.random(in: 0..<480_000, using: &random) }.sorted()
        #expect(Recurrence(Self.events(places)) == nil)
    }

    @Test("Fewer than five gaps, and gaps that are one, have no period")
    func few() {
        #expect(Recurrence(Self.events([1_000, 2_000, 3_000, 4_000])) == nil)
        #expect(Recurrence(Self.events([1_000, 1_010, 1_020, 1_030, 1_040, 1_050])) == nil)
        #expect(Recurrence([]) == nil)
    }
}
