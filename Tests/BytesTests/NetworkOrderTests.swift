import Core
import Testing

@Suite("Network byte order")
struct NetworkOrderTests {
    private let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

    @Test("Fields are read big-endian at any offset")
    func reading() {
        let span = bytes.span.bytes
        #expect(span.uint8(at: 7) == 8)
        #expect(span.uint16(at: 1) == 0x0203)
        #expect(span.uint24(at: 5) == 0x060708)
        #expect(span.uint32(at: 3) == 0x0405_0607)
        #expect(span.uint64(at: 0) == 0x0102_0304_0506_0708)
    }

    @Test("A field that does not lie wholly inside is nil", arguments: -9...9)
    func bounds(offset: Int) {
        let span = bytes.span.bytes
        #expect((span.uint8(at: offset) != nil) == (0...7).contains(offset))
        #expect((span.uint16(at: offset) != nil) == (0...6).contains(offset))
        #expect((span.uint24(at: offset) != nil) == (0...5).contains(offset))
        #expect((span.uint32(at: offset) != nil) == (0...4).contains(offset))
        #expect((span.uint64(at: offset) != nil) == (offset == 0))
    }

    @Test("Offsets at the ends of Int do not trap")
    func extremeOffsets() {
        let span = bytes.span.bytes
        #expect(span.uint64(at: .max) == nil && span.uint64(at: .min) == nil)
        #expect(span.uint24(at: .max) == nil && span.uint8(at: .min) == nil)
    }

    @Test("What is written is read back; what does not fit is not written, and said")
    func writing() {
        var memory = [UInt8](repeating: 0xFF, count: 18)
        var elements = memory.mutableSpan
        var writer = ByteWriter(elements.mutableBytes)
        writer.write(UInt8(1))
        writer.write(UInt16(0x0203))
        writer.writeUInt24(0x040506)
        writer.write(UInt32(0x0708_090A))
        writer.write(bytes.span.bytes)
        let fits = writer.count == 18 && !writer.overflowed
        writer.write(UInt8(9))
        let refuses = writer.count == 18 && writer.overflowed
        #expect(fits && refuses)
        writer.patch(0xAABB, at: 1)
        #expect(memory == [1, 0xAA, 0xBB, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8])
    }
}
