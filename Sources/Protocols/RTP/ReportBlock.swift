import Core

/// One participant's report on the packets received from another (RFC 3550 §6.4.1).
public struct ReportBlock: Equatable, Sendable {
    /// The stream reported on.
    public var ssrc: UInt32
    /// Share lost since the report before, in 1/256.
    public var fractionLost: UInt8
    /// Packets lost since the beginning; below zero if more were repeated than lost. 24 bits on the wire.
    public var cumulativeLost: Int32
    /// Highest sequence number, with the count of wraps in the upper 16 bits.
    public var extendedHighestSequence: UInt32
    /// Interarrival jitter in ticks of the stream's RTP clock.
    public var jitterTicks: UInt32
    /// ``NTPTimestamp/middle`` of the last sender report that came from this stream; zero if none has.
    public var lastSenderReport: UInt32
    /// Time since that sender report came in, in 1/65536 s; zero if none has.
    public var delaySinceLastSenderReport: UInt32

    /// Size on the wire, in bytes.
    static var size: Int { @_noAllocation @_noLocks get { 24 } }

    /// Makes a block.
    @_noAllocation @_noLocks
    public init(
        ssrc: UInt32, fractionLost: UInt8 = 0, cumulativeLost: Int32 = 0,
        extendedHighestSequence: UInt32 = 0,
        jitterTicks: UInt32 = 0, lastSenderReport: UInt32 = 0, delaySinceLastSenderReport: UInt32 = 0
    ) {
        self.ssrc = ssrc
        self.fractionLost = fractionLost
        self.cumulativeLost = cumulativeLost
        self.extendedHighestSequence = extendedHighestSequence
        self.jitterTicks = jitterTicks
        self.lastSenderReport = lastSenderReport
        self.delaySinceLastSenderReport = delaySinceLastSenderReport
    }

    @_noAllocation @_noLocks
    init?(in packet: borrowing RawSpan, at offset: Int) {
        guard let ssrc = packet.uint32(at: offset), let loss = packet.uint32(at: offset + 4),
            let highest = packet.uint32(at: offset + 8), let jitter = packet.uint32(at: offset + 12),
            let lastReport = packet.uint32(at: offset + 16), let delay = packet.uint32(at: offset + 20)
        else { return nil }
        self.ssrc = ssrc
        fractionLost = UInt8(truncatingIfNeeded: loss >> 24)
        // Shifted up and down again to carry the sign of 24 bits.
        cumulativeLost = Int32(bitPattern: loss << 8) >> 8
        extendedHighestSequence = highest
        jitterTicks = jitter
        lastSenderReport = lastReport
        delaySinceLastSenderReport = delay
    }

    @_noAllocation @_noLocks
    func write(into writer: inout ByteWriter) {
        writer.write(ssrc)
        writer.write(UInt32(fractionLost) << 24 | UInt32(bitPattern: cumulativeLost) & 0xFF_FFFF)
        writer.write(extendedHighestSequence)
        writer.write(jitterTicks)
        writer.write(lastSenderReport)
        writer.write(delaySinceLastSenderReport)
    }
}

/// The report blocks of one sender or receiver report, left where they are in the packet.
public struct ReportBlocks: Equatable, Sendable {
    /// 0…31.
    public let count: Int
    private let offset: Int

    @_noAllocation @_noLocks
    init(count: Int, at offset: Int) {
        self.count = count
        self.offset = offset
    }

    /// The block at `index`, or `nil` past the last.
    ///
    /// - Parameter packet: The same bytes that the report was read from.
    @_noAllocation @_noLocks
    public func block(at index: Int, in packet: RawSpan) -> ReportBlock? {
        guard index >= 0, index < count else { return nil }
        return ReportBlock(in: packet, at: offset + index * ReportBlock.size)
    }

    /// The block on `ssrc`, if there is one.
    @_noAllocation @_noLocks
    public func block(on ssrc: UInt32, in packet: RawSpan) -> ReportBlock? {
        var index = 0
        while index < count {
            if let block = block(at: index, in: packet), block.ssrc == ssrc { return block }
            index += 1
        }
        return nil
    }
}
