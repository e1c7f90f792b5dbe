import Core

/// The part of a sender report on the sender's own stream (RFC 3550 §6.4.1).
public struct SenderInfo: Equatable, Sendable {
    /// Time of day at which the report was sent, on the sender's clock.
    public var ntp: NTPTimestamp
    /// The RTP timestamp of that same moment.
    public var rtpTimestamp: UInt32
    /// RTP packets sent so far; wraps.
    public var packetCount: UInt32
    /// Payload bytes sent so far, without headers and padding; wraps.
    public var octetCount: UInt32

    /// Makes a sender's part of a report.
    @_noAllocation @_noLocks
    public init(ntp: NTPTimestamp, rtpTimestamp: UInt32, packetCount: UInt32, octetCount: UInt32) {
        self.ntp = ntp
        self.rtpTimestamp = rtpTimestamp
        self.packetCount = packetCount
        self.octetCount = octetCount
    }

    @_noAllocation @_noLocks
    init?(in packet: borrowing RawSpan, at offset: Int) {
        guard let ntp = packet.uint64(at: offset), let rtp = packet.uint32(at: offset + 8),
            let packets = packet.uint32(at: offset + 12), let octets = packet.uint32(at: offset + 16)
        else { return nil }
        self.ntp = NTPTimestamp(rawValue: ntp)
        rtpTimestamp = rtp
        packetCount = packets
        octetCount = octets
    }

    @_noAllocation @_noLocks
    func write(into writer: inout ByteWriter) {
        writer.write(ntp.rawValue)
        writer.write(rtpTimestamp)
        writer.write(packetCount)
        writer.write(octetCount)
    }
}
