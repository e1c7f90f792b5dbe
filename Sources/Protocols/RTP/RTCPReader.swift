import Core

/// Steps through the packets of one compound RTCP datagram without copying.
///
/// All lengths are checked before the first packet is handed out, so that nothing of a broken datagram takes effect.
/// The reader holds no bytes: give ``next(in:)`` the datagram that was validated.
public struct RTCPReader: Sendable {
    private var offset = 0

    /// Checks the datagram as RFC 3550 A.2 asks, but takes one that does not begin with a report, as RFC 5506 allows.
    ///
    /// - Parameter datagram: One UDP payload, already authenticated and decrypted. Any length, any bytes.
    /// - Throws: ``RTCPParseError``. Nothing a peer sends can trap.
    @_noAllocation @_noLocks
    public init(validating datagram: borrowing RawSpan) throws(RTCPParseError) {
        guard datagram.byteCount >= 4 else { throw RTCPParseError(.tooShort, at: datagram.byteCount) }
        var offset = 0
        while offset < datagram.byteCount {
            let end = try Self.packetEnd(in: datagram, at: offset)
            guard case .some = Self.packet(in: datagram, from: offset, to: end) else {
                throw RTCPParseError(.truncatedBody, at: offset)
            }
            offset = end
        }
    }

    /// The next packet, or `nil` after the last.
    @_noAllocation @_noLocks
    public mutating func next(in datagram: RawSpan) -> RTCPPacket? {
        guard let words = datagram.uint16(at: offset + 2) else { return nil }
        let end = offset + 4 + Int(words) * 4
        guard end <= datagram.byteCount else { return nil }
        let packet = Self.packet(in: datagram, from: offset, to: end)
        offset = end
        return packet
    }

    @_noAllocation @_noLocks
    private static func packetEnd(in datagram: RawSpan, at offset: Int) throws(RTCPParseError) -> Int {
        guard let first = datagram.uint8(at: offset), let type = datagram.uint8(at: offset + 1),
            let words = datagram.uint16(at: offset + 2)
        else { throw RTCPParseError(.wrongLength, at: offset) }
        guard first >> 6 == 2 else { throw RTCPParseError(.wrongVersion, at: offset) }
        guard type >= 192, type <= 223 else { throw RTCPParseError(.wrongType, at: offset + 1) }
        let end = offset + 4 + Int(words) * 4
        guard end <= datagram.byteCount else { throw RTCPParseError(.wrongLength, at: offset + 2) }
        if first & 0x20 != 0 {
            // RFC 3550 §6.4.1 requires padding of whole 32-bit words; transport-wide feedback does not keep to that,
            // and browsers send it.
            guard end == datagram.byteCount, let padding = datagram.uint8(at: end - 1), padding > 0,
                Int(padding) <= end - offset - 4
            else { throw RTCPParseError(.badPadding, at: offset) }
        }
        return end
    }

    /// The packet between two offsets, or `nil` if it is shorter than its header announces.
    @_noAllocation @_noLocks
    private static func packet(in datagram: RawSpan, from offset: Int, to end: Int) -> RTCPPacket? {
        guard let first = datagram.uint8(at: offset), let type = datagram.uint8(at: offset + 1) else {
            return nil
        }
        let count = Int(first & 0x1F)
        let start = offset + 4
        var bodyEnd = end
        if first & 0x20 != 0, let padding = datagram.uint8(at: end - 1) {
            bodyEnd = max(start, end - Int(padding))
        }

        switch type {
        case 200:
            guard start + 24 + count * ReportBlock.size <= bodyEnd, let ssrc = datagram.uint32(at: start),
                let info = SenderInfo(in: datagram, at: start + 4)
            else { return nil }
            return .senderReport(ssrc: ssrc, info, ReportBlocks(count: count, at: start + 24))
        case 201:
            guard start + 4 + count * ReportBlock.size <= bodyEnd, let ssrc = datagram.uint32(at: start)
            else {
                return nil
            }
            return .receiverReport(ssrc: ssrc, ReportBlocks(count: count, at: start + 4))
        case 202:
            guard start + count * 4 <= bodyEnd else { return nil }
            return .sourceDescription(
                SourceDescriptions(count: count, body: start..<bodyEnd))
        case 203:
            return goodbye(in: datagram, count: count, from: start, to: bodyEnd)
        default:
            return .other(type: type, body: start..<bodyEnd)
        }
    }

    @_noAllocation @_noLocks
    private static func goodbye(in datagram: RawSpan, count: Int, from start: Int, to end: Int)
        -> RTCPPacket?
    {
        let sourcesEnd = start + count * 4
        guard sourcesEnd <= end else { return nil }
        var reason: Range<Int>?
        if sourcesEnd < end, let length = datagram.uint8(at: sourcesEnd) {
            guard sourcesEnd + 1 + Int(length) <= end else { return nil }
            reason = (sourcesEnd + 1)..<(sourcesEnd + 1 + Int(length))
        }
        return .goodbye(Goodbye(count: count, at: start, reason: reason))
    }
}

/// Why bytes are not a compound RTCP packet, and where that shows.
public struct RTCPParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong with a compound packet.
    public struct Code: Equatable, Sendable {
        private let number: UInt8

        @_noAllocation @_noLocks
        private init(_ number: UInt8) { self.number = number }

        /// Fewer bytes than a common header has.
        public static var tooShort: Code {
            @_noAllocation @_noLocks get { Code(0) }
        }
        /// A packet's version is not 2.
        public static var wrongVersion: Code {
            @_noAllocation @_noLocks get { Code(1) }
        }
        /// The type is outside 192…223, so this is no RTCP.
        public static var wrongType: Code {
            @_noAllocation @_noLocks get { Code(2) }
        }
        /// A packet's length runs past the datagram's end, or the datagram has bytes left over.
        public static var wrongLength: Code {
            @_noAllocation @_noLocks get { Code(3) }
        }
        /// Padding before the last packet, or more padding than packet.
        public static var badPadding: Code {
            @_noAllocation @_noLocks get { Code(4) }
        }
        /// A packet is too short for what its header announces.
        public static var truncatedBody: Code {
            @_noAllocation @_noLocks get { Code(5) }
        }
    }

    /// What is wrong.
    public let code: Code
    /// Byte offset in the datagram.
    public let offset: Int

    @_noAllocation @_noLocks
    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// A sentence for logs.
    public var description: String {
        let problem =
            switch code {
            case .tooShort: "shorter than a header"
            case .wrongVersion: "version is not 2"
            case .wrongType: "type is outside 192…223"
            case .wrongLength: "lengths do not add up to the datagram"
            case .badPadding: "padding does not fit"
            default: "shorter than its header announces"
            }
        return "not an RTCP packet: \(problem) (byte \(offset))"
    }
}
