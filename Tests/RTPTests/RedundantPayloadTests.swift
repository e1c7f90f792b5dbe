import RTP
import TestSupport
import Testing

@Suite("Redundant payloads")
struct RedundantPayloadTests {
    private func blocks(_ bytes: [UInt8]) -> [RedundantPayload.Block]? {
        guard let payload = RedundantPayload(0..<bytes.count, of: bytes) else { return nil }
        return (0..<payload.count).compactMap { payload.block(at: $0, in: bytes) }
    }

    /// RFC 2198 §7's figure: DVI4 whose primary is 20 ms and a repetition by LPC, with short data.
    private static let example: [UInt8] = [0x87, 0x02, 0x80, 0x03, 0x05, 1, 2, 3, 9, 9, 9, 9]

    @Test("A repetition and a primary are found where RFC 2198 §3 says")
    func example() {
        #expect(
            blocks(Self.example) == [
                .init(payloadType: 7, timestampOffset: 160, data: 5..<8),
                .init(payloadType: 5, timestampOffset: 0, data: 8..<12),
            ])
        #expect(blocks([0x6F]) == [.init(payloadType: 111, timestampOffset: 0, data: 1..<1)])
    }

    @Test("Payloads cut short, without a last header, or with too many frames are none")
    func faults() {
        for length in 0..<8 { #expect(blocks(Array(Self.example.prefix(length))) == nil) }
        #expect(blocks([0x80, 0, 0, 0]) == nil)
        let header: [UInt8] = [0x80, 0, 0, 0]
        let many = [[UInt8]](repeating: header, count: 16).joined() + ([0x6F] as [UInt8])
        #expect(blocks(Array(many)) == nil)
        #expect(blocks(Array(many.dropFirst(4)))?.count == 16)
        #expect(RedundantPayload(0..<99, of: Self.example) == nil)
    }

    @Test("Random bytes never trap, and frames lie within the payload, one behind the other")
    func randomBytes() {
        var generator = SeededGenerator(seed: 4)
        var taken = 0
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...60, using: &generator)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            // Small lengths make valid ones likely.
            for offset in stride(from: 2, to: count, by: 4) { bytes[offset] = 0 }
            guard let found = blocks(bytes) else { continue }
            taken += 1
            for (left, right) in zip(found, found.dropFirst()) {
                #expect(left.data.upperBound == right.data.lowerBound)
            }
            #expect(found.last?.data.upperBound == count && found.last?.timestampOffset == 0)
        }
        #expect(taken > 1_000)
    }

    private func write(
        _ writer: inout RedundancyWriter, _ frame: [UInt8], at timestamp: UInt32, room: Int = 1_200
    ) -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: room)
        let size = bytes.withMutableRawSpan {
            writer.write(frame.span.bytes, payloadType: 111, timestamp: timestamp, into: &$0)
        }
        return Array(bytes.prefix(size))
    }

    @Test("Each payload repeats the two frames before, oldest first, across the timestamp's wrap")
    func writing() throws {
        var writer = RedundancyWriter(depth: 2)
        let start = UInt32.max - 1_000
        for step in 0..<6 {
            let frame = [UInt8](repeating: UInt8(step), count: step + 1)
            let bytes = write(&writer, frame, at: start &+ UInt32(step * 960))
            let found = try #require(blocks(bytes))
            #expect(found.count == min(step, 2) + 1)
            for (index, block) in found.enumerated() {
                let age = found.count - 1 - index
                #expect(Int(block.timestampOffset) == age * 960)
                #expect(Array(bytes[block.data]) == [UInt8](repeating: UInt8(step - age), count: step - age + 1))
                #expect(block.payloadType == 111)
            }
        }
        writer.reset()
        #expect(blocks(write(&writer, [1], at: 0))?.count == 1)
    }

    @Test("Frames too old, too long or empty are not repeated, and redundancy gives way to what must fit")
    func limits() {
        var writer = RedundancyWriter(depth: 9)
        #expect(writer.depth == 2)
        _ = write(&writer, [1], at: 0)
        #expect(blocks(write(&writer, [2], at: 16_384))?.count == 1)
        #expect(blocks(write(&writer, [3], at: 16_384 + 16_383))?.count == 2)
        _ = write(&writer, [UInt8](repeating: 4, count: 1_024), at: 40_000, room: 2_000)
        #expect(blocks(write(&writer, [5], at: 40_960))?.count == 1)
        _ = write(&writer, [], at: 41_920)
        #expect(blocks(write(&writer, [6], at: 42_880))?.count == 1)
        writer.depth = 1
        _ = write(&writer, [UInt8](repeating: 7, count: 100), at: 50_000)
        #expect(write(&writer, [8, 8], at: 50_960, room: 50) == [0x6F, 8, 8])
        #expect(blocks(write(&writer, [9], at: 51_920, room: 8))?.count == 2)
        #expect(write(&writer, [1, 2, 3], at: 52_880, room: 3).isEmpty)
    }

    @Test("A frame of 1,023 bytes is the longest that is repeated")
    func longest() throws {
        var writer = RedundancyWriter(depth: 1)
        let long = (0..<1_023).map { UInt8(truncatingIfNeeded: $0) }
        _ = write(&writer, long, at: 0, room: 2_000)
        let bytes = write(&writer, [1], at: 960, room: 2_000)
        let found = try #require(blocks(bytes))
        #expect(Array(bytes[found[0].data]) == long)
    }
}
