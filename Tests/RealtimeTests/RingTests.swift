import Realtime
import Testing

/// Hands one half of a ring to a thread's closure.
private final class Handover<Half: ~Copyable & Sendable>: @unchecked Sendable {
    // Written before the thread starts, taken by it once.
    private var half: Half?

    init(_ half: consuming Half) { self.half = consume half }
    func take() -> Half? { half.take() }
}

/// What a thread found, read after it was joined.
private final class Findings: @unchecked Sendable {
    var outOfOrder = 0
    var count = 0
}

@Suite("Single-producer single-consumer rings")
struct RingTests {
    @Test("Elements come out in the order they went in, and a full ring refuses more")
    func order() {
        var ring = SPSCRing<Int>(capacity: 4)
        let accepted = (0...4).map { ring.producer.push($0) }
        #expect(accepted == [true, true, true, true, false])
        var popped = [ring.consumer.pop()]
        let refilled = ring.producer.push(5)
        #expect(refilled)
        for _ in 0..<5 { popped.append(ring.consumer.pop()) }
        #expect(popped == [0, 1, 2, 3, 5, nil])
    }

    @Test("A capacity is rounded up to a power of two", arguments: [(1, 1), (3, 4), (4, 4), (5, 8)])
    func capacity(asked: Int, granted: Int) {
        var ring = SPSCRing<Int>(capacity: asked)
        var pushed = 0
        while ring.producer.push(pushed) { pushed += 1 }
        #expect(pushed == granted)
    }

    @Test("Two million elements cross between two threads, each once and in order")
    func stress() throws {
        let total: UInt64 = 2_000_000
        let ring = SPSCRing<UInt64>(capacity: 64)
        var producer = ring.producer
        let handover = Handover(ring.consumer)
        let findings = Findings()
        let reader = try RealtimeThread(name: "ring-reader") {
            guard var consumer = handover.take() else { return }
            var expected: UInt64 = 0
            while expected < total {
                guard let value = consumer.pop() else { continue }
                if value != expected { findings.outOfOrder += 1 }
                expected += 1
            }
            findings.count = Int(expected)
        }
        for value in 0..<total {
            while !producer.push(value) {}
        }
        reader.join()
        #expect(findings.count == Int(total))
        #expect(findings.outOfOrder == 0)
    }

    @Test("Audio crosses between two threads unchanged, regardless of the sizes of reads and writes")
    func audioStress() throws {
        let total = 1_000_000
        let ring = AudioRing(capacity: 1024)
        var producer = ring.producer
        let handover = Handover(ring.consumer)
        let findings = Findings()
        let reader = try RealtimeThread(name: "ring-reader") {
            guard var consumer = handover.take() else { return }
            var frame = [Int16](repeating: 0, count: 480)
            while findings.count < total {
                var span = frame.mutableSpan
                let read = consumer.read(into: &span)
                for index in 0..<read {
                    if frame[index] != Int16(truncatingIfNeeded: findings.count) { findings.outOfOrder += 1 }
                    findings.count += 1
                }
            }
        }
        var written = 0
        var chunk = 1
        while written < total {
            let size = min(chunk, total - written)
            let samples = (written..<(written + size)).map { Int16(truncatingIfNeeded: $0) }
            written += producer.write(samples.span)
            chunk = chunk % 700 + 13
        }
        reader.join()
        #expect(findings.count == total)
        #expect(findings.outOfOrder == 0)
    }

    @Test("A short read leaves the rest of the frame untouched, and an overrun says how much was taken")
    func partial() {
        var ring = AudioRing(capacity: 8)
        let samples: [Int16] = [1, 2, 3, 4, 5, 6]
        let taken = [ring.producer.write(samples.span), ring.producer.write(samples.span)]
        #expect(taken == [6, 2])
        let (space, waiting) = (ring.producer.space, ring.consumer.count)
        #expect(space == 0 && waiting == 8)
        var frame = [Int16](repeating: -1, count: 10)
        var span = frame.mutableSpan
        let read = ring.consumer.read(into: &span)
        #expect(read == 8)
        #expect(frame == [1, 2, 3, 4, 5, 6, 1, 2, -1, -1])
    }

    @Test("A closed ring has ended once all that was written is read")
    func closing() {
        var ring = AudioRing(capacity: 8)
        let samples: [Int16] = [1, 2]
        _ = ring.producer.write(samples.span)
        ring.producer.close()
        let before = ring.consumer.hasEnded()
        var frame = [Int16](repeating: 0, count: 2)
        var span = frame.mutableSpan
        _ = ring.consumer.read(into: &span)
        let after = ring.consumer.hasEnded()
        #expect(!before && after)
    }
}
