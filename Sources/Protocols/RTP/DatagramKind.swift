import Core

/// The kind of a datagram on a media socket, by its first byte (RFC 7983 §7).
public enum DatagramKind: Equatable, Sendable {
    /// First byte 0…3.
    case stun
    /// First byte 20…63.
    case dtls
    /// First byte 64…79.
    case turnChannel
    /// First byte 128…191, second byte outside 192…223.
    case rtp
    /// First byte 128…191, second byte 192…223 (RFC 5761 §4).
    case rtcp
    /// Anything else, the empty datagram too.
    case unknown

    /// Classifies one datagram; works on protected packets as well, because SRTP leaves these bytes readable.
    @_noAllocation @_noLocks
    public init(of datagram: borrowing RawSpan) {
        self = Self.kind(first: datagram.uint8(at: 0), second: datagram.uint8(at: 1))
    }

    @_noAllocation @_noLocks
    private static func kind(first: UInt8?, second: UInt8?) -> DatagramKind {
        guard let first else { return .unknown }
        if first <= 3 { return .stun }
        if first >= 20, first <= 63 { return .dtls }
        if first >= 64, first <= 79 { return .turnChannel }
        guard first >= 128, first <= 191, let second else { return .unknown }
        return second >= 192 && second <= 223 ? .rtcp : .rtp
    }
}
