import Core
import Testing

@testable import Tracing

/// A queue in virtual time.
private struct Driven {
    var queue: TraceQueue
    var now = Instant.zero

    init(_ change: (inout TraceQueue.Limits) -> Void = { _ in }) {
        var limits = TraceQueue.Limits()
        change(&limits)
        queue = TraceQueue(limits, seed: 1)
    }

    @discardableResult
    mutating func feed(_ input: TraceQueue.Input) -> [TraceQueue.Output] {
        var outbox: [TraceQueue.Output] = []
        queue.handle(input, at: now, into: &outbox)
        return outbox
    }

    /// Lets time pass until the queue does something.
    mutating func wait() -> [TraceQueue.Output] {
        guard let deadline = queue.nextDeadline else { return [] }
        now = deadline
        return feed(.timerFired)
    }

    /// A trace of that many bytes.
    static func trace(_ number: UInt8, _ count: Int = 10) -> [UInt8] { [UInt8](repeating: number, count: count) }
}

@Suite("Traces on their way to a collector")
struct TraceQueueTests {
    @Test("The traces of a second are one request, and the next ones another")
    func batch() {
        var run = Driven()
        #expect(run.feed(.add(Driven.trace(1))) == [] && run.feed(.add(Driven.trace(2))) == [])
        #expect(
            run.wait() == [.send([Driven.trace(1), Driven.trace(2)])]
                && run.now == Instant.zero.advanced(by: .seconds(1)))
        #expect(run.feed(.add(Driven.trace(3))) == [] && run.queue.nextDeadline == nil)
        #expect(run.feed(.answered(.accepted)) == [.send([Driven.trace(3)])])
        #expect(run.feed(.answered(.accepted)) == [] && run.queue.count == 0 && run.queue.counts.exported == 3)
    }

    @Test(
        "A request has 100 traces at most, and half a megabyte unless one trace is larger; a full one waits for nothing"
    )
    func batchLimits() {
        var run = Driven()
        for _ in 1...99 { #expect(run.feed(.add(Driven.trace(1))) == []) }
        #expect(
            run.feed(.add(Driven.trace(2))) == [.send(Array(repeating: Driven.trace(1), count: 99) + [Driven.trace(2)])]
        )
        var large = Driven()
        #expect(large.feed(.add(Driven.trace(1, 300 << 10))) == [])
        #expect(large.feed(.add(Driven.trace(2, 300 << 10))) == [.send([Driven.trace(1, 300 << 10)])])
        #expect(large.feed(.add(Driven.trace(3, 1 << 20))) == [])
        #expect(large.feed(.answered(.accepted)) == [.send([Driven.trace(2, 300 << 10)])])
        #expect(large.feed(.answered(.accepted)) == [.send([Driven.trace(3, 1 << 20)])])
    }

    @Test("Beyond its limits the oldest that wait are dropped and counted, never those that are being sent")
    func overflow() {
        var run = Driven { $0.traces = 3 }
        run.feed(.add(Driven.trace(0)))
        #expect(run.wait() == [.send([Driven.trace(0)])])
        for number in 1...4 { run.feed(.add(Driven.trace(UInt8(number)))) }
        #expect(run.queue.count == 3 && run.queue.counts.overflowed == 2)
        #expect(run.feed(.answered(.accepted)) == [.send([Driven.trace(3), Driven.trace(4)])])

        var bytes = Driven { $0.bytes = 100 }
        for number in 1...11 { bytes.feed(.add(Driven.trace(UInt8(number)))) }
        #expect(bytes.queue.count == 10 && bytes.queue.counts.overflowed == 1)
        bytes.feed(.add(Driven.trace(12, 101)))
        #expect(bytes.queue.count == 10 && bytes.queue.counts.overflowed == 2, "one that never fits drops no other")
    }

    @Test("A collector that is busy is asked again when it says, and one that says nothing after growing waits")
    func retries() {
        var run = Driven()
        run.feed(.add(Driven.trace(1)))
        _ = run.wait()
        #expect(run.feed(.answered(.busy(.seconds(7)))) == [])
        #expect(run.queue.nextDeadline == run.now.advanced(by: .seconds(7)))
        #expect(run.feed(.timerFired) == [], "not earlier")
        #expect(run.wait() == [.send([Driven.trace(1)])])
        for ceiling in [2, 4, 8] {
            let before = run.now
            #expect(run.feed(.answered(.unreachable)) == [] && run.wait() == [.send([Driven.trace(1)])])
            let wait = before.duration(to: run.now).seconds
            #expect((Double(ceiling) / 2...Double(ceiling)).contains(wait), "\(wait)")
        }
        #expect(run.feed(.answered(.accepted)) == [] && run.queue.counts == .init(exported: 1))
    }

    @Test("After five requests in vain a batch is dropped and counted, and the next one is sent")
    func end() {
        for (answer, counts) in [
            (TraceQueue.Answer.busy(nil), TraceQueue.Counts(refused: 1)), (.unreachable, .init(unreachable: 1)),
        ] {
            var run = Driven()
            run.feed(.add(Driven.trace(1)))
            for _ in 1...4 {
                #expect(run.wait() == [.send([Driven.trace(1)])] && run.feed(.answered(answer)) == [])
            }
            run.feed(.add(Driven.trace(2)))
            #expect(run.wait() == [.send([Driven.trace(1)])])
            #expect(run.feed(.answered(answer)) == [.gaveUp(traces: 1), .send([Driven.trace(2)])])
            #expect(run.queue.counts == counts)
        }
    }

    @Test("429, 502, 503 and 504 are tried again, and no other answer")
    func statuses() {
        for status in 100...599 {
            let expected: TraceQueue.Answer =
                switch status {
                case 200...299: .accepted
                case 429, 502, 503, 504: .busy(.seconds(1))
                default: .refused
                }
            #expect(TraceQueue.Answer(status: status, retryAfter: .seconds(1)) == expected)
        }
        var run = Driven()
        run.feed(.add(Driven.trace(1)))
        _ = run.wait()
        #expect(run.feed(.answered(.refused)) == [.gaveUp(traces: 1)] && run.queue.counts.refused == 1)
        #expect(run.queue.nextDeadline == nil)
    }

    @Test("At the end everything is sent once, at once, and what comes later is dropped")
    func finish() {
        var run = Driven { $0.batchTraces = 2 }
        run.feed(.add(Driven.trace(1)))
        #expect(run.feed(.finish) == [.send([Driven.trace(1)])])
        run.feed(.add(Driven.trace(9)))
        #expect(run.queue.counts.overflowed == 1)
        #expect(run.feed(.answered(.busy(.seconds(1)))) == [.gaveUp(traces: 1), .finished])
        #expect(run.queue.nextDeadline == nil && run.feed(.timerFired) == [])

        var empty = Driven()
        #expect(empty.feed(.finish) == [.finished] && empty.feed(.finish) == [])

        var pausing = Driven { $0.batchTraces = 2 }
        pausing.feed(.add(Driven.trace(1)))
        _ = pausing.wait()
        pausing.feed(.answered(.unreachable))
        for number in 2...4 { pausing.feed(.add(Driven.trace(UInt8(number)))) }
        #expect(pausing.feed(.finish) == [.send([Driven.trace(1)])])
        #expect(pausing.feed(.answered(.accepted)) == [.send([Driven.trace(2), Driven.trace(3)])])
        #expect(pausing.feed(.answered(.accepted)) == [.send([Driven.trace(4)])])
        #expect(pausing.feed(.answered(.accepted)) == [.finished] && pausing.queue.counts.exported == 4)
    }

    @Test("A batch that is under way at the end is waited for, and the rest follows")
    func finishWhileSending() {
        var run = Driven()
        run.feed(.add(Driven.trace(1)))
        _ = run.wait()
        run.feed(.add(Driven.trace(2)))
        #expect(run.feed(.finish) == [])
        #expect(run.feed(.answered(.accepted)) == [.send([Driven.trace(2)])])
        #expect(run.feed(.answered(.unreachable)) == [.gaveUp(traces: 1), .finished])
    }
}

extension TraceQueue.Counts {
    fileprivate init(exported: Int = 0, refused: Int = 0, unreachable: Int = 0) {
        self.init()
        (self.exported, self.refused, self.unreachable) = (exported, refused, unreachable)
    }
}
