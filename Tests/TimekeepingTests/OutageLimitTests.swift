import Testing
import Core

@Suite("Warnings of an outage")
struct OutageLimitTests {
    @Test("Eight failures in 2.6 s are one warning, and later ones come at growing intervals, up to the longest")
    func grows() {
        var limit = OutageLimit(first: .seconds(30), longest: .seconds(100))
        var now = Instant.zero
        var warned: [Duration] = []
        var leftOut = 0
        for index in 0..<1_000 {
            now = now.advanced(by: .milliseconds(index < 8 ? 325 : 1_000))
            guard let count = limit.admit(at: now) else { continue }
            warned.append(Instant.zero.duration(to: now))
            leftOut += count
        }
        #expect(warned.count { $0 < .seconds(3) } == 1)
        let pauses = zip(warned, warned.dropFirst()).map { $1 - $0 }
        #expect(pauses.count > 5 && zip(pauses, pauses.dropFirst()).allSatisfy { $1 - $0 > .seconds(-2) })
        #expect(pauses.first.map { $0 >= .seconds(30) && $0 < .seconds(32) } == true)
        #expect(pauses.last.map { $0 >= .seconds(100) && $0 < .seconds(102) } == true)
        // Of all failures, each is warned of or counted, except those after the last warning.
        #expect((900...1_000).contains(warned.count + leftOut))
    }

    @Test("The first failure of the next outage is warned of at once")
    func next() {
        var limit = OutageLimit()
        #expect(limit.admit(at: .zero) == 0)
        #expect(limit.admit(at: Instant.zero.advanced(by: .seconds(1))) == nil)
        limit.end()
        #expect(limit.admit(at: Instant.zero.advanced(by: .seconds(2))) == 0)
    }
}
