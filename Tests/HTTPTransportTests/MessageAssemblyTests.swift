import Testing

@testable import HTTPTransport

@Suite struct MessageAssemblyTests {
    private func frame(
        _ kind: MessageAssembly.Kind, _ part: [UInt8], isFinal: Bool = true, isMasked: Bool = true,
        hasReservedBits: Bool = false
    ) -> MessageAssembly.Frame<[UInt8]> {
        MessageAssembly.Frame(
            kind: kind, isFinal: isFinal, isMasked: isMasked, hasReservedBits: hasReservedBits, part: part)
    }

    private func steps(
        _ frames: [MessageAssembly.Frame<[UInt8]>], limit: Int = 8, expectsMasks: Bool = true
    ) -> [MessageAssembly.Step] {
        var assembly = MessageAssembly(limit: limit, expectsMasks: expectsMasks)
        return frames.map { assembly.take($0) }
    }

    @Test("Messages are text or binary by their first frame, and fragments are joined in order")
    func messages() {
        #expect(steps([frame(.text, [1, 2]), frame(.binary, [3])]) == [.text([1, 2]), .binary([3])])
        let fragments = [
            frame(.binary, [1], isFinal: false), frame(.continuation, [], isFinal: false), frame(.continuation, [2]),
            frame(.text, [3], isFinal: false), frame(.continuation, [4]),
        ]
        #expect(steps(fragments) == [.incomplete, .incomplete, .binary([1, 2]), .incomplete, .text([3, 4])])
    }

    @Test("A message is as long as the limit at most, in one frame or several")
    func limit() {
        let full = [UInt8](repeating: 0, count: 8)
        #expect(steps([frame(.text, full)]) == [.text(full)])
        #expect(steps([frame(.text, full + [0])]) == [.tooBig])
        #expect(steps([frame(.binary, full, isFinal: false), frame(.continuation, [0])]) == [.incomplete, .tooBig])
    }

    @Test("Frames out of place, of unknown kinds or with reserved bits are violations")
    func violations() {
        #expect(steps([frame(.continuation, [])]) == [.violation])
        #expect(steps([frame(.text, [], isFinal: false), frame(.text, [])]) == [.incomplete, .violation])
        #expect(steps([frame(.text, [], isFinal: false), frame(.binary, [])]) == [.incomplete, .violation])
        #expect(steps([frame(.other, [])]) == [.violation])
        #expect(steps([frame(.text, [], hasReservedBits: true)]) == [.violation])
    }

    @Test("A server takes only masked frames, and a client only frames without a mask", arguments: [true, false])
    func masks(expectsMasks: Bool) {
        let frames = [frame(.text, [1], isMasked: expectsMasks), frame(.text, [1], isMasked: !expectsMasks)]
        #expect(steps(frames, expectsMasks: expectsMasks) == [.text([1]), .violation])
    }
}
