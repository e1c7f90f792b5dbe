internal import Core

/// Data between a TURN client and its server under a channel's number (RFC 8656 §12.4).
public struct ChannelData: Equatable, Sendable {
    /// The numbers that channels can have (RFC 8656 §12).
    public static let numbers: ClosedRange<UInt16> = 0x4000...0x4FFF

    /// 0x4000…0x4FFF.
    public var channel: UInt16
    /// Data from the peer or for it.
    public var data: [UInt8]

    /// Makes a message.
    public init(channel: UInt16, data: [UInt8]) {
        self.channel = channel
        self.data = data
    }

    /// Parses one datagram, or one frame of a stream; padding after the data is taken off.
    ///
    /// - Returns: nil if it is no channel data or is cut short.
    public init?(parsing bytes: [UInt8]) {
        guard let channel = bytes.uint16(at: 0), Self.numbers.contains(channel), let length = bytes.uint16(at: 2),
            Int(length) + 4 <= bytes.count
        else { return nil }
        self.init(channel: channel, data: Array(bytes[4..<(4 + Int(length))]))
    }

    /// The message's bytes.
    ///
    /// - Parameter padded: On a stream each message is padded to a multiple of four (RFC 8656 §12.5).
    public func encoded(padded: Bool) -> [UInt8] {
        let length = UInt16(clamping: data.count)
        var bytes: [UInt8] = [
            UInt8(truncatingIfNeeded: channel >> 8), UInt8(truncatingIfNeeded: channel),
            UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length),
        ]
        bytes.append(contentsOf: data.prefix(Int(length)))
        while padded, bytes.count % 4 != 0 { bytes.append(0) }
        return bytes
    }
}

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
