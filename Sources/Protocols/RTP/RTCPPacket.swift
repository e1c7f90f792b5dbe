import Core

/// One packet out of a compound RTCP datagram; longer parts stay in the datagram and are read from there.
public enum RTCPPacket: Equatable, Sendable {
    /// A sender's report on its stream and on those it receives (RFC 3550 §6.4.1).
    case senderReport(ssrc: UInt32, SenderInfo, ReportBlocks)
    /// A report of a pure receiver on the streams it receives (RFC 3550 §6.4.2).
    case receiverReport(ssrc: UInt32, ReportBlocks)
    /// Descriptions of sources (RFC 3550 §6.5).
    case sourceDescription(SourceDescriptions)
    /// Sources that leave (RFC 3550 §6.6).
    case goodbye(Goodbye)
    /// Feedback, extended reports and all other types; `body` follows the four bytes of the common header.
    case other(type: UInt8, body: Range<Int>)
}

/// The chunks of one SDES packet, left where they are (RFC 3550 §6.5).
public struct SourceDescriptions: Equatable, Sendable {
    /// Chunks announced, 0…31.
    public let count: Int
    private let body: Range<Int>

    @_noAllocation @_noLocks
    init(count: Int, body: Range<Int>) {
        self.count = count
        self.body = body
    }

    /// Byte range of the canonical name of `ssrc` in the packet, without terminator; `nil` if it is not there.
    ///
    /// - Parameter packet: The same bytes that the descriptions were read from.
    @_noAllocation @_noLocks
    public func canonicalName(of ssrc: UInt32, in packet: RawSpan) -> Range<Int>? {
        var offset = body.lowerBound
        var chunk = 0
        while chunk < count, let source = packet.uint32(at: offset), offset + 4 <= body.upperBound {
            offset += 4
            while let type = packet.uint8(at: offset), offset < body.upperBound, type != 0 {
                guard let length = packet.uint8(at: offset + 1) else { return nil }
                let end = offset + 2 + Int(length)
                guard end <= body.upperBound else { return nil }
                if type == 1, source == ssrc { return (offset + 2)..<end }
                offset = end
            }
            // The list ends with one to four zero bytes, up to the next 32-bit boundary.
            offset = body.lowerBound + ((offset - body.lowerBound) / 4 + 1) * 4
            chunk += 1
        }
        return nil
    }
}

/// One BYE packet, left where it is (RFC 3550 §6.6).
public struct Goodbye: Equatable, Sendable {
    /// Sources that leave, 0…31.
    public let count: Int
    /// Byte range of the reason's text in the packet, if one is given.
    public let reason: Range<Int>?
    private let offset: Int

    @_noAllocation @_noLocks
    init(count: Int, at offset: Int, reason: Range<Int>?) {
        self.count = count
        self.offset = offset
        self.reason = reason
    }

    /// Whether `ssrc` is among those that leave.
    ///
    /// - Parameter packet: The same bytes that the goodbye was read from.
    @_noAllocation @_noLocks
    public func names(_ ssrc: UInt32, in packet: RawSpan) -> Bool {
        var index = 0
        while index < count {
            if packet.uint32(at: offset + index * 4) == ssrc { return true }
            index += 1
        }
        return false
    }
}

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
