import TestSupport
import Testing

@testable import Tracing

@Suite("Trace contexts")
struct TraceContextTests {
    private static let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test("The example of W3C Trace Context §3.2.3 is read, and written the same")
    func example() throws {
        let context = try #require(TraceContext(Self.text))
        #expect(context.isSampled && "\(context)" == Self.text)
        #expect("\(context.trace)" == "4bf92f3577b34da6a3ce929d0e0e4736" && "\(context.span)" == "00f067aa0ba902b7")
        let other = try #require(TraceContext("\(Self.text.dropLast(2))00"))
        #expect(!other.isSampled && other.trace == context.trace)
    }

    @Test(
        "What §3.2.2 does not allow is none",
        arguments: [
            "", "00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067AA0BA902B7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ])
    func refused(_ text: String) { #expect(TraceContext(text) == nil) }

    @Test("Of a later version that is read which version 00 has, up to a length")
    func laterVersion() {
        let later = "cc\(Self.text.dropFirst(2))"
        #expect(TraceContext(later)?.description == Self.text)
        #expect(TraceContext(later + "-what-the-future-will-be-like")?.description == Self.text)
        let longest = later + "-" + String(repeating: "a", count: TraceContext.mostBytes - 56)
        #expect(TraceContext(longest) != nil && TraceContext(longest + "a") == nil)
    }

    @Test("A text that is cut off anywhere is none")
    func truncated() {
        for count in 0..<Self.text.count { #expect(TraceContext(String(Self.text.prefix(count))) == nil) }
    }

    @Test("What is read of random bytes is written and read again the same")
    func random() {
        var generator = SeededGenerator(seed: 3)
        let letters = Array("0123456789abcdefABCDEF-g".utf8)
        for _ in 0..<20_000 {
            var bytes = Array(Self.text.utf8)
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] =
                    letters[Int.random(in: 0..<letters.count, using: &generator)]
            }
            guard let context = TraceContext(String(decoding: bytes, as: UTF8.self)) else { continue }
            #expect(TraceContext("\(context)") == context)
        }
    }

    @Test("Names that are made are 16 and 8 bytes, and never all zeros")
    func names() {
        struct Zeros: RandomNumberGenerator { mutating func next() -> UInt64 { 0 } }
        var zeros = Zeros()
        let (trace, span) = (TraceID(using: &zeros), SpanID(using: &zeros))
        #expect(trace.bytes == [UInt8](repeating: 0, count: 15) + [1] && span.bytes.last == 1 && span.bytes.count == 8)
        #expect(TraceID(high: 0, low: 0) == nil && SpanID(0) == nil)
    }

    @Test("A share of traces is recorded, the same ones by each program that has this share or a greater one")
    func sampling() {
        var generator = SeededGenerator(seed: 9)
        let ids = (0..<10_000).map { _ in TraceID(using: &generator) }
        let (tenth, half) = (TraceSampling(share: 0.1), TraceSampling(share: 0.5))
        let taken = ids.filter(tenth.takes)
        #expect((900...1_100).contains(taken.count) && taken.allSatisfy(half.takes))
        #expect(ids.allSatisfy(TraceSampling(share: 1).takes) && !ids.contains(where: TraceSampling(share: 0).takes))
    }
}
