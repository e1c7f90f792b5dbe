import Core

/// Up to 255 bytes of UTF-8 stored inline, for the texts of RTCP, whose length field is one byte.
public struct ShortText: Sendable {
    private var bytes = InlineArray<255, UInt8>(repeating: 0)
    /// Bytes in use.
    public private(set) var count = 0

    /// Makes an empty text.
    @_noAllocation @_noLocks
    public init() {}

    /// Takes the text, cut at 255 bytes.
    public init(_ text: String) {
        for byte in text.utf8.prefix(255) {
            bytes[count] = byte
            count += 1
        }
    }

    /// Copies part of a packet, cut at 255 bytes and at the packet's end.
    @_noAllocation @_noLocks
    public init(copying range: Range<Int>, of packet: borrowing RawSpan) {
        var offset = range.lowerBound
        while offset < range.upperBound, count < 255, let byte = packet.uint8(at: offset) {
            bytes[count] = byte
            count += 1
            offset += 1
        }
    }

    /// The text; what is not UTF-8 is repaired. Allocates.
    public var string: String {
        var copy: [UInt8] = []
        copy.reserveCapacity(count)
        for index in 0..<count { copy.append(bytes[index]) }
        return String(decoding: copy, as: UTF8.self)
    }

    /// The byte at `index`, which is below ``count``.
    subscript(index: Int) -> UInt8 {
        @_noAllocation @_noLocks get { bytes[index] }
    }

    @_noAllocation @_noLocks
    func write(into writer: inout ByteWriter) {
        writer.write(UInt8(truncatingIfNeeded: count))
        var index = 0
        while index < count {
            writer.write(bytes[index])
            index += 1
        }
    }
}
