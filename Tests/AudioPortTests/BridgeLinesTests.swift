import CThreadCounters
import Realtime
import Testing

@testable import AudioPort

/// Two joined calls in virtual time: frames of both lines, in the order and at the times that a test wants.
@Suite("Lines of joined calls", .serialized)
struct BridgeLinesTests {
    /// A call that says numbers, each sample one more than the one before, and keeps what it hears.
    private final class Caller {
        private var line: PortLine
        private var next: Int
        private let step: Int
        private(set) var heard: [Int16] = []
        private var (said, answer) = ([Int16](repeating: 0, count: 960), [Int16](repeating: 0, count: 960))

        init(_ line: consuming PortLine, from first: Int = 1, by step: Int = 1) {
            self.line = line
            (next, self.step) = (first, step)
            heard.reserveCapacity(1 << 20)
        }

        var left: Int { line.framesLeftOut }
        var missed: Int { line.missedSamples }

        func frame() {
            for index in 0..<960 {
                // Never 0, which is silence.
                said[index] = Int16(next % 30_000 + 1)
                next += step
            }
            Self.exchange(&line, said, &answer)
        }

        func hold() { Self.hold(&line, said, &answer) }

        func keep() { heard += answer }

        private static func exchange(_ line: inout PortLine, _ said: [Int16], _ answer: inout [Int16]) {
            var room = answer.mutableSpan
            line.exchange(received: said.span, sending: &room)
        }

        private static func hold(_ line: inout PortLine, _ said: [Int16], _ answer: inout [Int16]) {
            let room = answer.mutableSpan
            line.hold(received: said.span, sending: room)
        }
    }

    private static func pair() -> (ann: Caller, bob: Caller) {
        let lines = BridgeLines.make()
        return (Caller(lines.one), Caller(lines.other, from: 500))
    }

    /// Samples that are missing between the first and the last one that was heard, and silent ones among them.
    private func gaps(_ heard: [Int16]) -> (missing: Int, silent: Int) {
        let sound = heard.drop { $0 == 0 }
        var (missing, silent, last) = (0, 0, Int?.none)
        for sample in sound {
            guard sample != 0 else {
                silent += 1
                continue
            }
            if let last { missing += (Int(sample) - last - 1 + 30_000) % 30_000 }
            last = Int(sample)
        }
        return (missing, silent)
    }

    @Test("Each hears the other within 20 ms, not itself, and no sample of the marked signal is lost or out of order")
    func marked() {
        let (ann, bob) = Self.pair()
        for _ in 0..<500 {
            for caller in [ann, bob] {
                caller.frame()
                caller.keep()
            }
        }
        // Bob's frame comes after Ann's, so that he hears her in the same tick, and she hears him in the next.
        #expect(bob.heard.prefix(3) == [2, 3, 4] && bob.heard.count == 480_000)
        #expect(ann.heard.prefix(960).allSatisfy { $0 == 0 })
        // Behind silence, sound rises within 5 ms.
        #expect(ann.heard[960 + 240] == 501 + 240)
        for (caller, heard) in [(ann, Array(ann.heard.dropFirst(960 + 240))), (bob, bob.heard)] {
            let (missing, silent) = gaps(heard)
            #expect(missing == 0 && silent == 0 && caller.left == 0 && caller.missed == 0)
        }
    }

    @Test("What one has said before the other joined is left out, except for a frame, so that no delay remains")
    func late() {
        let (ann, bob) = Self.pair()
        for _ in 0..<3 { ann.frame() }
        for _ in 0..<100 {
            bob.frame()
            bob.keep()
            ann.frame()
            ann.keep()
        }
        // The third of Ann's frames is the first that Bob hears; it rises within 5 ms, because it continues nothing.
        #expect(bob.heard[240] == Int16(2 * 960 + 1 + 240 + 1))
        #expect(gaps(Array(bob.heard.dropFirst(240))).missing == 0)
        #expect(ann.heard[240] == 501 + 240)
    }

    @Test("A call that never reads delays nothing, and what it does not take is counted")
    func neverReads() {
        let (ann, bob) = Self.pair()
        for _ in 0..<100 {
            ann.frame()
            ann.keep()
        }
        #expect(ann.heard.allSatisfy { $0 == 0 })
        #expect(ann.missed == 100 * 960 - BridgeLines.capacity)
        // Once it reads, it hears what is said then, and not what waited.
        for _ in 0..<20 {
            bob.frame()
            bob.keep()
            ann.frame()
        }
        #expect(bob.heard.suffix(960).allSatisfy { $0 != 0 })
        #expect(gaps(Array(bob.heard.suffix(15 * 960))).missing == 0)
    }

    @Test(
        "After a stall of 60 ms nothing is lost at first; the frames that it left in the ring are left out later, at once"
    )
    func stall() {
        let (ann, bob) = Self.pair()
        func tick() {
            ann.frame()
            bob.frame()
            bob.keep()
        }
        for _ in 0..<50 { tick() }
        for _ in 0..<3 { ann.frame() }
        for _ in 0..<100 { tick() }
        #expect(gaps(bob.heard).missing == 0 && bob.left == 0)
        for _ in 0..<900 { tick() }
        #expect(bob.left == 1)
        // A frame that is left out is replaced by a slope of 5 ms, whose samples are no marks.
        #expect(bob.heard.suffix(960).allSatisfy { $0 != 0 })
    }

    @Test("Clocks that differ by 1,000 ppm leave out or miss one frame in 20 s, and no delay grows")
    func drift() {
        let (ann, bob) = Self.pair()
        // Ann runs at 20 ms, and Bob at 20.02 ms.
        var (annDue, bobDue) = (0, 5_000)
        var waited = 0
        while annDue < 600_000_000 {
            if annDue <= bobDue {
                ann.frame()
                ann.keep()
                annDue += 20_000
            } else {
                bob.frame()
                bob.keep()
                bobDue += 20_020
            }
            waited += 1
        }
        // Ten minutes have 30 drifts of a frame.
        #expect((25...32).contains(bob.left), "\(bob.left)")
        #expect(ann.left <= 2 && bob.missed == 0 && ann.missed == 0)
        let silent = gaps(ann.heard).silent
        #expect((20 * 960...40 * 960).contains(silent), "\(silent)")
    }

    @Test("While a call hears a file, what the other says is dropped, and does not come late")
    func held() {
        let (ann, bob) = Self.pair()
        for _ in 0..<10 {
            ann.frame()
            bob.frame()
        }
        for _ in 0..<50 {
            ann.frame()
            bob.hold()
        }
        for _ in 0..<10 {
            bob.frame()
            bob.keep()
            ann.frame()
        }
        // Behind silence, sound rises within 5 ms.
        #expect(bob.left == 0 && gaps(Array(bob.heard.dropFirst(960 + 240))).missing == 0)
        #expect(bob.heard.suffix(960).allSatisfy { $0 != 0 })
    }

    @Test("10,000 frames allocate nothing and take no lock")
    func allocations() {
        let (ann, bob) = Self.pair()
        for _ in 0..<10 {
            ann.frame()
            bob.frame()
        }
        let (allocations, locks) = (handset_test_allocations(), handset_test_locks())
        for index in 0..<10_000 {
            ann.frame()
            if index % 1_000 != 999 { bob.frame() }
        }
        // Expectations allocate and lock themselves.
        let spent = (handset_test_allocations() - allocations, handset_test_locks() - locks)
        #expect(spent.0 == 0 && spent.1 == 0)
    }
}
