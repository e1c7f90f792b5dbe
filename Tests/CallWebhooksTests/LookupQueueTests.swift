import Testing
import Core

@testable import CallWebhooks

@Suite("Names of hosts that are looked up")
struct LookupQueueTests {
    private struct Bench {
        var queue = LookupQueue()
        var now = Instant.zero
        var looked: [String] = []
        var answered: [Int] = []
        var refused: [Int: LookupQueue.Refusal] = [:]

        mutating func feed(_ input: LookupQueue.Input) {
            for output in queue.handle(input, at: now) {
                switch output {
                case .look(let host): looked.append(host)
                case .answer(_, let numbers): answered += numbers
                case .refuse(let number, let refusal): refused[number] = refusal
                }
            }
        }
    }

    @Test("A name is looked up once for all who ask meanwhile, and two names at a time")
    func sharing() {
        var bench = Bench()
        for (number, host) in ["a", "a", "b", "c", "c"].enumerated() { bench.feed(.ask(host: host, number: number)) }
        #expect(bench.looked == ["a", "b"])
        bench.feed(.ended(host: "a"))
        #expect(bench.looked == ["a", "b", "c"] && bench.answered == [0, 1])
        bench.feed(.ended(host: "c"))
        bench.feed(.ended(host: "c"))
        #expect(bench.answered == [0, 1, 3, 4])
    }

    @Test("No request waits longer than five seconds for a resolver that hangs, and at most two threads do")
    func hanging() {
        var bench = Bench()
        for number in 0..<3 { bench.feed(.ask(host: "\(number)", number: number)) }
        #expect(bench.queue.nextDeadline == Instant.zero.advanced(by: .seconds(5)))
        bench.now = bench.now.advanced(by: .seconds(5))
        bench.feed(.timerFired)
        #expect(bench.refused == [0: .tooLate, 1: .tooLate, 2: .tooLate] && bench.looked == ["0", "1"])
        bench.feed(.ask(host: "2", number: 9))
        #expect(bench.looked == ["0", "1"], "both threads hang")
        bench.feed(.ended(host: "0"))
        #expect(bench.looked == ["0", "1", "2"] && bench.answered.isEmpty)
        bench.feed(.ended(host: "2"))
        #expect(bench.answered == [9])
    }

    @Test("Of many who ask at once 64 wait")
    func flood() {
        var bench = Bench()
        for number in 0..<1_000 { bench.feed(.ask(host: "\(number)", number: number)) }
        #expect(bench.refused.count == 1_000 - LookupQueue.mostWaiting && bench.looked.count == 2)
        #expect(bench.refused.values.allSatisfy { $0 == .tooMany })
    }
}
