import Core

/// A feedback packet (RFC 4585 §6.1, RFC 5104), out of ``RTCPPacket/other(type:body:)``.
public enum RTCPFeedback: Equatable, Sendable {
    /// Packets that are missing.
    case nack(media: UInt32, MissingPackets)
    /// Arrival times of all packets of the transport.
    case transportWide(TransportFeedback)
    /// A request for a whole picture (PLI, FIR): ignored, because we send sound.
    case pictureRequest
    /// The receiver's maximum bitrate, in bits per second (REMB).
    case maximumBitrate(UInt64)
    /// Any other, with its format.
    case other(type: UInt8, format: UInt8)

    /// Reads a packet of type 205 or 206; `nil` for other types and for a packet that is too short for its type.
    ///
    /// - Parameters:
    ///   - type: The packet's type.
    ///   - body: Its body, from ``RTCPReader``.
    ///   - datagram: The same bytes that the reader was given.
    @_noAllocation @_noLocks
    public init?(type: UInt8, body: Range<Int>, in datagram: borrowing RawSpan) {
        guard type == 205 || type == 206, body.count >= 8, body.upperBound <= datagram.byteCount,
            let first = datagram.uint8(at: body.lowerBound - 4),
            let media = datagram.uint32(at: body.lowerBound + 4)
        else { return nil }
        let items = (body.lowerBound + 8)..<body.upperBound
        switch (type, first & 0x1F) {
        case (205, 1): self = .nack(media: media, MissingPackets(items))
        case (205, 15):
            guard let feedback = TransportFeedback(items, in: datagram) else { return nil }
            self = .transportWide(feedback)
        case (206, 1), (206, 4): self = .pictureRequest
        case (206, 15):
            guard datagram.uint32(at: items.lowerBound) == 0x5245_4D42, items.count >= 8,
                let fields = datagram.uint32(at: items.lowerBound + 4)
            else {
                self = .other(type: type, format: 15)
                return
            }
            let mantissa = UInt64(fields & 0x3_FFFF)
            let exponent = UInt64(fields >> 18 & 0x3F)
            // Eighteen bits moved by up to 63 may be more than 64 hold.
            self = .maximumBitrate(exponent > 46 ? .max : mantissa << exponent)
        case (_, let format): self = .other(type: type, format: format)
        }
    }
}

/// Sequence numbers that a receiver misses (RFC 4585 §6.2.1), left where they are in the packet.
public struct MissingPackets: Equatable, Sendable {
    private let items: Range<Int>
    private var offset: Int
    private var base: UInt16 = 0
    private var mask: UInt32 = 0

    @_noAllocation @_noLocks
    init(_ items: Range<Int>) {
        self.items = items
        offset = items.lowerBound
    }

    /// The next one, or `nil` after the last.
    ///
    /// - Parameter datagram: The same bytes that the packet was read from.
    @_noAllocation @_noLocks
    public mutating func next(in datagram: RawSpan) -> UInt16? {
        while mask == 0 {
            guard offset + 4 <= items.upperBound, let fields = datagram.uint32(at: offset) else { return nil }
            offset += 4
            base = UInt16(truncatingIfNeeded: fields >> 16)
            // Bit 0 is the packet itself, and bit n the n-th after it.
            mask = (fields & 0xFFFF) << 1 | 1
        }
        let step = UInt16(truncatingIfNeeded: mask.trailingZeroBitCount)
        mask &= mask &- 1
        return base &+ step
    }
}

/// Writes a packet that asks for missing packets (RFC 4585 §6.2.1): up to 16 groups of 17 numbers.
public struct NegativeAcknowledgement: Sendable {
    /// SSRC of the sender of the feedback.
    public var sender: UInt32
    /// SSRC of the source whose packets are missing.
    public var media: UInt32
    private var bases = InlineArray<16, UInt16>(repeating: 0)
    private var masks = InlineArray<16, UInt16>(repeating: 0)
    private var count = 0

    /// Makes a packet that asks for nothing.
    @_noAllocation @_noLocks
    public init(sender: UInt32, media: UInt32) {
        self.sender = sender
        self.media = media
    }

    /// Whether nothing is asked for.
    public var isEmpty: Bool { @_noAllocation @_noLocks get { count == 0 } }

    /// Asks for one more packet; numbers come in rising order.
    ///
    /// - Returns: Whether there was room.
    @_noAllocation @_noLocks @discardableResult
    public mutating func append(_ sequenceNumber: UInt16) -> Bool {
        if count > 0 {
            let step = sequenceNumber &- bases[count - 1]
            if step == 0 { return true }
            if step <= 16 {
                masks[count - 1] |= 1 << (step &- 1)
                return true
            }
        }
        guard count < 16 else { return false }
        bases[count] = sequenceNumber
        masks[count] = 0
        count += 1
        return true
    }

    /// Writes the packet at the front of `datagram`; it may go alone (RFC 5506).
    ///
    /// - Returns: Bytes written; 0 if nothing is asked for, or it does not fit.
    @_noAllocation @_noLocks
    public func write(into datagram: inout MutableRawSpan) -> Int {
        guard count > 0 else { return 0 }
        let end = datagram.byteCount
        var writer = ByteWriter(datagram._mutatingExtracting(0..<end))
        writer.write(0x81 as UInt8)
        writer.write(205 as UInt8)
        writer.write(UInt16(truncatingIfNeeded: 2 + count))
        writer.write(sender)
        writer.write(media)
        var index = 0
        while index < count {
            writer.write(bases[index])
            writer.write(masks[index])
            index += 1
        }
        return writer.overflowed ? 0 : writer.count
    }
}
