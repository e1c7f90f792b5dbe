import Core

/// A payload that carries earlier frames besides its own (RFC 2198), left where it is in the packet.
public struct RedundantPayload: Equatable, Sendable {
    /// One frame of it.
    public struct Block: Equatable, Sendable {
        /// 0…127.
        public var payloadType: UInt8
        /// By how many ticks the frame is older than the packet's timestamp: 0…16 383; 0 for the primary.
        public var timestampOffset: UInt16
        /// Byte range of the frame in the packet; may be empty.
        public var data: Range<Int>

        /// Makes a block.
        @_noAllocation @_noLocks
        public init(payloadType: UInt8, timestampOffset: UInt16, data: Range<Int>) {
            self.payloadType = payloadType
            self.timestampOffset = timestampOffset
            self.data = data
        }
    }

    /// Frames, the primary included: 1…16.
    public let count: Int
    private let payload: Range<Int>

    /// Most frames in a payload that is taken; no sender of sound has as many.
    public static var maximumCount: Int { @_noAllocation @_noLocks get { 16 } }

    /// Checks that all frames lie within the payload.
    ///
    /// - Parameters:
    ///   - payload: Byte range of the RTP payload.
    ///   - packet: The packet. Any length, any bytes.
    /// - Returns: `nil` if they do not, or if there are more than ``maximumCount``.
    @_noAllocation @_noLocks
    public init?(_ payload: Range<Int>, of packet: borrowing RawSpan) {
        guard payload.lowerBound >= 0, payload.upperBound <= packet.byteCount else { return nil }
        var offset = payload.lowerBound
        var size = 0
        var blocks = 1
        while offset < payload.upperBound, let first = packet.uint8(at: offset) {
            if first & 0x80 == 0 {
                guard offset + 1 + size <= payload.upperBound else { return nil }
                count = blocks
                self.payload = payload
                return
            }
            guard blocks < Self.maximumCount, offset + 4 <= payload.upperBound, let fields = packet.uint32(at: offset)
            else { return nil }
            size += Int(fields & 0x3FF)
            blocks += 1
            offset += 4
        }
        return nil
    }

    /// The frame at `index`, the oldest first and the primary last; `nil` past it.
    ///
    /// - Parameter packet: The same bytes that the payload was read from.
    @_noAllocation @_noLocks
    public func block(at index: Int, in packet: RawSpan) -> Block? {
        guard index >= 0, index < count else { return nil }
        var data = payload.lowerBound + (count - 1) * 4 + 1
        var position = 0
        while position < count - 1, let fields = packet.uint32(at: payload.lowerBound + position * 4) {
            let size = Int(fields & 0x3FF)
            if position == index {
                guard data + size <= payload.upperBound else { return nil }
                return Block(
                    payloadType: UInt8(truncatingIfNeeded: fields >> 24) & 0x7F,
                    timestampOffset: UInt16(truncatingIfNeeded: fields >> 10) & 0x3FFF, data: data..<(data + size))
            }
            data += size
            position += 1
        }
        guard let last = packet.uint8(at: payload.lowerBound + (count - 1) * 4), data <= payload.upperBound else {
            return nil
        }
        return Block(payloadType: last & 0x7F, timestampOffset: 0, data: data..<payload.upperBound)
    }
}

/// Writes payloads with copies of the previous frames (RFC 2198), which it stores.
///
/// Allocates nothing after it is made; 2 KB.
public struct RedundancyWriter: ~Copyable, Sendable {
    private struct Kept {
        var size = 0
        var timestamp: UInt32 = 0
        var payloadType: UInt8 = 0
    }

    /// How many earlier frames each payload repeats: 0…2.
    public var depth: Int {
        @_noAllocation @_noLocks get { wishedDepth }
        @_noAllocation @_noLocks set { wishedDepth = max(0, min(Self.slots, newValue)) }
    }

    private var wishedDepth: Int
    private var memory = InlineArray<2_048, UInt8>(repeating: 0)
    /// The newest first.
    private var kept = InlineArray<2, Kept>(repeating: Kept())
    private var newestSlot = 0

    private static var slots: Int { @_noAllocation @_noLocks get { 2 } }
    /// The length has ten bits.
    private static var maximumBlockSize: Int { @_noAllocation @_noLocks get { 1_023 } }

    /// Makes a writer that has seen no frame.
    public init(depth: Int) { wishedDepth = max(0, min(2, depth)) }

    /// Writes the payload of one frame, with as many of those before as `depth` asks for and fit, and keeps the frame.
    ///
    /// Frames older than 16 383 ticks, empty ones and those above 1 023 bytes are not repeated.
    /// - Returns: Bytes written; 0 if not even the frame alone fits, which is one byte longer than the frame.
    @_noAllocation @_noLocks
    public mutating func write(
        _ frame: RawSpan, payloadType: UInt8, timestamp: UInt32, into output: inout MutableRawSpan
    ) -> Int {
        let end = output.byteCount
        var writer = ByteWriter(output._mutatingExtracting(0..<end))
        var room = end - 1 - frame.byteCount
        var first = repeatable(0, before: timestamp)
        var second = first > 0 ? repeatable(1, before: timestamp) : 0
        if first + 4 > room { first = 0 }
        if first > 0 { room -= first + 4 }
        if first == 0 || second + 4 > room { second = 0 }
        if second > 0 { writeHeader(1, before: timestamp, into: &writer) }
        if first > 0 { writeHeader(0, before: timestamp, into: &writer) }
        writer.write(payloadType & 0x7F)
        if second > 0 { writeFrame(1, into: &writer) }
        if first > 0 { writeFrame(0, into: &writer) }
        writer.write(frame)
        keep(frame, payloadType, timestamp)
        return writer.overflowed ? 0 : writer.count
    }

    /// Forgets the frames before: after a pause they would not be in order.
    @_noAllocation @_noLocks
    public mutating func reset() {
        kept[0].size = 0
        kept[1].size = 0
    }

    /// Bytes of the frame at `index`, the newest being 0; 0 if it is not to be repeated.
    @_noAllocation @_noLocks
    private func repeatable(_ index: Int, before timestamp: UInt32) -> Int {
        guard index < wishedDepth, kept[index].size > 0 else { return 0 }
        let age = timestamp &- kept[index].timestamp
        return age > 0 && age <= 0x3FFF ? kept[index].size : 0
    }

    @_noAllocation @_noLocks
    private func writeHeader(_ index: Int, before timestamp: UInt32, into writer: inout ByteWriter) {
        let age = timestamp &- kept[index].timestamp
        writer.write(
            0x8000_0000 | UInt32(kept[index].payloadType & 0x7F) << 24 | (age & 0x3FFF) << 10
                | UInt32(truncatingIfNeeded: kept[index].size & 0x3FF))
    }

    @_noAllocation @_noLocks
    private func writeFrame(_ index: Int, into writer: inout ByteWriter) {
        let start = (newestSlot + index) % 2 * 1_024
        copy(start..<(start + kept[index].size), into: &writer)
    }

    /// Views of memory in place end the compiler's analysis; making one neither allocates nor locks.
    @_semantics("no_performance_analysis") @inline(__always)
    private func copy(_ range: Range<Int>, into writer: inout ByteWriter) {
        unsafe writer.write(memory.span.bytes.extracting(range))
    }

    @_noAllocation @_noLocks
    private mutating func keep(_ frame: RawSpan, _ payloadType: UInt8, _ timestamp: UInt32) {
        kept[1] = kept[0]
        newestSlot = 1 - newestSlot
        let fits = frame.byteCount <= Self.maximumBlockSize
        kept[0] = Kept(size: fits ? frame.byteCount : 0, timestamp: timestamp, payloadType: payloadType)
        var position = 0
        while position < kept[0].size, let byte = frame.uint8(at: position) {
            memory[newestSlot * 1_024 + position] = byte
            position += 1
        }
    }
}
