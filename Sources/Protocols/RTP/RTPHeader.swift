// RTP: packets of RFC 3550 and what is counted about them, as values that allocate nothing on the media path.

public import Core

/// The fixed part of an RTP packet, and where its payload lies (RFC 3550 §5.1).
public struct RTPHeader: Equatable, Sendable {
    /// 0…127; the session description defines its meaning.
    public var payloadType: UInt8
    /// Rises by one for each packet and wraps at 2¹⁶.
    public var sequenceNumber: UInt16
    /// Media time in the payload's clock: 48 000 ticks per second for Opus at every bandwidth (RFC 7587 §4.1).
    public var timestamp: UInt32
    /// The stream this packet belongs to, chosen at random by its sender.
    public var ssrc: UInt32
    /// First packet after a pause (RFC 3551 §4.1, and so RFC 7587 §4.1).
    public var marker: Bool
    /// Byte range of the payload in the packet: after CSRCs and extension, before padding.
    public var payload: Range<Int>
    /// The header extension, if the packet has one. ``write(into:)-(ByteWriter)`` leaves it out.
    public var headerExtension: HeaderExtension?

    /// Size of a header without CSRCs and extension, in bytes.
    public static var fixedSize: Int {
        @_noAllocation @_noLocks get { 12 }
    }

    /// Makes a header to be written; `payload` is left empty, directly after the fixed part.
    @_noAllocation @_noLocks
    public init(
        payloadType: UInt8, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32,
        marker: Bool = false
    ) {
        self.payloadType = payloadType
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.ssrc = ssrc
        self.marker = marker
        payload = 12..<12
        headerExtension = nil
    }
}

extension RTPHeader {
    /// Parses the header of one RTP packet, leaving the payload where it is.
    ///
    /// - Parameter packet: One UDP payload, already authenticated and decrypted. Any length, any bytes.
    /// - Throws: ``RTPParseError``. Nothing a peer sends can trap.
    /// - Complexity: O(1); allocates nothing.
    ///
    /// Source: RFC 3550 §5.1 (layout), §5.3.1 (extension); RFC 7983 §7 (telling RTP from STUN and DTLS).
    @_noAllocation @_noLocks
    public init(parsing packet: borrowing RawSpan) throws(RTPParseError) {
        guard let first = packet.uint8(at: 0), let second = packet.uint8(at: 1),
            let sequenceNumber = packet.uint16(at: 2), let timestamp = packet.uint32(at: 4),
            let ssrc = packet.uint32(at: 8)
        else { throw RTPParseError(.tooShort, at: packet.byteCount) }
        guard first >> 6 == 2 else { throw RTPParseError(.wrongVersion, at: 0) }

        var start = 12 + Int(first & 0x0F) * 4
        guard start <= packet.byteCount else { throw RTPParseError(.truncatedSources, at: 12) }

        var headerExtension: HeaderExtension?
        if first & 0x10 != 0 {
            guard let profile = packet.uint16(at: start), let words = packet.uint16(at: start + 2) else {
                throw RTPParseError(.truncatedExtension, at: start)
            }
            let end = start + 4 + Int(words) * 4
            guard end <= packet.byteCount else { throw RTPParseError(.truncatedExtension, at: start) }
            headerExtension = HeaderExtension(profile: profile, data: (start + 4)..<end)
            start = end
        }

        var end = packet.byteCount
        if first & 0x20 != 0 {
            // The last byte counts the padding, itself included, so zero is invalid (RFC 3550 §5.1).
            guard end > start, let padding = packet.uint8(at: end - 1), padding > 0,
                Int(padding) <= end - start
            else {
                throw RTPParseError(.badPadding, at: end - 1)
            }
            end -= Int(padding)
        }

        payloadType = second & 0x7F
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.ssrc = ssrc
        marker = second & 0x80 != 0
        payload = start..<end
        self.headerExtension = headerExtension
    }

    /// Appends the twelve bytes of the fixed header. Bits of ``payloadType`` above the seventh are dropped.
    @_noAllocation @_noLocks
    public func write(into writer: inout ByteWriter) {
        writer.write(0x80 as UInt8)
        writer.write((marker ? 0x80 : 0) | (payloadType & 0x7F))
        writer.write(sequenceNumber)
        writer.write(timestamp)
        writer.write(ssrc)
    }

    /// Writes the fixed header at the front of `packet`.
    ///
    /// - Returns: Twelve, or zero if `packet` is shorter than that (then nothing was written).
    @_noAllocation @_noLocks
    public func write(into packet: inout MutableRawSpan) -> Int {
        guard packet.byteCount >= 12 else { return 0 }
        var writer = ByteWriter(packet._mutatingExtracting(0..<12))
        write(into: &writer)
        return writer.count
    }
}

/// Why bytes are not an RTP packet, and where that shows.
public struct RTPParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong with a packet.
    public struct Code: Equatable, Sendable {
        private let number: UInt8

        @_noAllocation @_noLocks
        private init(_ number: UInt8) { self.number = number }

        /// Fewer bytes than a fixed header has.
        public static var tooShort: Code {
            @_noAllocation @_noLocks get { Code(0) }
        }
        /// The version is not 2.
        public static var wrongVersion: Code {
            @_noAllocation @_noLocks get { Code(1) }
        }
        /// The list of contributing sources runs past the end.
        public static var truncatedSources: Code {
            @_noAllocation @_noLocks get { Code(2) }
        }
        /// The header extension runs past the end.
        public static var truncatedExtension: Code {
            @_noAllocation @_noLocks get { Code(3) }
        }
        /// The announced padding is zero, or longer than the packet.
        public static var badPadding: Code {
            @_noAllocation @_noLocks get { Code(4) }
        }
    }

    /// What is wrong.
    public let code: Code
    /// Byte offset in the packet.
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
            case .truncatedSources: "contributing sources run past the end"
            case .truncatedExtension: "header extension runs past the end"
            default: "padding does not fit"
            }
        return "not an RTP packet: \(problem) (byte \(offset))"
    }
}
