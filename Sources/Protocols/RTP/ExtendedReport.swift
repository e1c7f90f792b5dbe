import Core

/// Blocks of extended reports by which a receive-only endpoint measures the round trip (RFC 3611 §4.4, §4.5).
public struct ExtendedReport: Equatable, Sendable {
    /// The receiver's time of day, to be sent back.
    public var referenceTime: NTPTimestamp?
    /// Returned to ``addressee``: ``NTPTimestamp/middle`` of its last reference time.
    public var lastReference: UInt32?
    /// Time between getting that reference and sending it back, in 1/65536 s.
    public var delaySinceLastReference: UInt32
    /// SSRC of the peer whose reference ``lastReference`` is.
    public var addressee: UInt32

    /// Makes a report with nothing in it.
    @_noAllocation @_noLocks
    public init() {
        referenceTime = nil
        lastReference = nil
        delaySinceLastReference = 0
        addressee = 0
    }

    /// Reads the blocks of a packet of type 207, and skips unknown kinds.
    ///
    /// - Parameters:
    ///   - body: The packet's body, from ``RTCPReader``.
    ///   - ssrc: The SSRC whose sub-block is searched.
    ///   - datagram: The same bytes that the reader was given.
    /// - Returns: `nil` if the type is another, or a block runs past the packet.
    @_noAllocation @_noLocks
    public init?(type: UInt8, body: Range<Int>, answering ssrc: UInt32, in datagram: borrowing RawSpan) {
        guard type == 207, body.count >= 4, body.upperBound <= datagram.byteCount else { return nil }
        self.init()
        var offset = body.lowerBound + 4
        while offset < body.upperBound {
            guard offset + 4 <= body.upperBound, let kind = datagram.uint8(at: offset),
                let words = datagram.uint16(at: offset + 2)
            else { return nil }
            let start = offset + 4
            let end = start + Int(words) * 4
            guard end <= body.upperBound else { return nil }
            if kind == 4, words == 2, let time = datagram.uint64(at: start) {
                referenceTime = NTPTimestamp(rawValue: time)
            }
            if kind == 5 { takeDelays(start, end, ssrc, datagram) }
            offset = end
        }
    }

    @_noAllocation @_noLocks
    private mutating func takeDelays(_ start: Int, _ end: Int, _ ssrc: UInt32, _ datagram: borrowing RawSpan) {
        var offset = start
        while offset + 12 <= end, let source = datagram.uint32(at: offset) {
            if source == ssrc, let reference = datagram.uint32(at: offset + 4),
                let delay = datagram.uint32(at: offset + 8)
            {
                addressee = source
                lastReference = reference
                delaySinceLastReference = delay
            }
            offset += 12
        }
    }

    /// Writes the packet at the front of `datagram`.
    ///
    /// - Parameter sender: Who reports.
    /// - Returns: Bytes written; 0 if there is nothing in it, or it does not fit.
    @_noAllocation @_noLocks
    public func write(sender: UInt32, into datagram: inout MutableRawSpan) -> Int {
        let size = datagram.byteCount
        var writer = ByteWriter(datagram._mutatingExtracting(0..<size))
        writer.write(0x80 as UInt8)
        writer.write(207 as UInt8)
        writer.write(0 as UInt16)
        writer.write(sender)
        if let referenceTime {
            writer.write(0x0400_0002 as UInt32)
            writer.write(referenceTime.rawValue)
        }
        if let lastReference {
            writer.write(0x0500_0003 as UInt32)
            writer.write(addressee)
            writer.write(lastReference)
            writer.write(delaySinceLastReference)
        }
        guard writer.count > 8 else { return 0 }
        writer.patch(UInt16(truncatingIfNeeded: writer.count / 4 - 1), at: 2)
        return writer.overflowed ? 0 : writer.count
    }

    /// The round trip from an answer of the peer: `nil` if it answers nothing.
    ///
    /// - Parameter arrival: Our own time of day when it came, from the clock that made the reference.
    @_noAllocation @_noLocks
    public func roundTripNanoseconds(arrival: NTPTimestamp) -> Int64? {
        guard let lastReference, lastReference != 0 else { return nil }
        let elapsed = Int32(bitPattern: arrival.middle &- lastReference &- delaySinceLastReference)
        // 15 µs steps: a very short trip may come out just below zero.
        guard elapsed > -66 else { return nil }
        return Int64(max(0, elapsed)) * 1_000_000_000 >> 16
    }
}
