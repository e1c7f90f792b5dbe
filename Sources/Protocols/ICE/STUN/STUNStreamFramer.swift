/// Cuts a byte stream into STUN messages and channel data (RFC 8656 §12.5, RFC 8489 §6.2.2).
///
/// Holds less than one frame (65 556 bytes) between calls. A stream that is neither has failed permanently, because the
/// start of the next message is unknown.
public struct STUNStreamFramer: Sendable {
    private var pending: [UInt8] = []
    /// The stream is of another kind; it returns no more frames.
    public private(set) var isBroken = false

    /// Starts at the beginning of a stream.
    public init() {}

    /// Takes the next bytes and returns the frames that they complete, in order, padding included.
    public mutating func push(_ bytes: [UInt8]) -> [[UInt8]] {
        guard !isBroken else { return [] }
        pending.append(contentsOf: bytes)
        var frames: [[UInt8]] = []
        var start = 0
        while pending.count - start >= 4 {
            let first = UInt16(pending[start]) << 8 | UInt16(pending[start + 1])
            let length = Int(pending[start + 2]) << 8 | Int(pending[start + 3])
            let size: Int
            if first & 0xC000 == 0, length % 4 == 0 {
                size = STUNMessage.headerSize + length
            } else if ChannelData.numbers.contains(first) {
                size = 4 + (length + 3) & ~3
            } else {
                isBroken = true
                pending = []
                return frames
            }
            guard pending.count - start >= size else { break }
            frames.append(Array(pending[start..<(start + size)]))
            start += size
        }
        pending.removeFirst(start)
        return frames
    }
}
