internal import Bytes
internal import RTP

/// What a worker has to know of a datagram to find whose it is.
enum DatagramGlance: BitwiseCopyable {
    /// RTP or RTCP of this sender.
    case media(ssrc: UInt32)
    /// A TURN server's: `length` bytes behind the prefix came through `channel`; of media, its sender (RFC 8656 §12.4).
    case channelData(channel: UInt16, length: Int, media: UInt32?)
    /// STUN or DTLS.
    case connectivity
    /// Nothing that belongs here.
    case unknown
}

// Looks at a datagram without changing it. Unoptimised code counts the end of such a view as a deallocation, though
// there is nothing to free, so this is not analysed; what it calls is.
@_semantics("no_performance_analysis") @inline(__always)
func glance(at datagram: borrowing MutableRawSpan) -> DatagramGlance {
    let bytes = datagram.bytes
    switch DatagramKind(of: bytes) {
    case .rtp: return bytes.uint32(at: 8).map { .media(ssrc: $0) } ?? .unknown  // RFC 3550 §5.1
    case .rtcp: return bytes.uint32(at: 4).map { .media(ssrc: $0) } ?? .unknown  // RFC 3550 §6.4
    case .stun, .dtls: return .connectivity
    case .turnChannel:
        guard let channel = bytes.uint16(at: 0), let length = bytes.uint16(at: 2), Int(length) + 4 <= bytes.byteCount
        else { return .unknown }
        var media: UInt32?
        switch DatagramKind(of: bytes.extracting(4..<(4 + Int(length)))) {
        case .rtp: media = bytes.uint32(at: 4 + 8)
        case .rtcp: media = bytes.uint32(at: 4 + 4)
        case .stun, .dtls, .turnChannel, .unknown: media = nil
        }
        return .channelData(channel: channel, length: Int(length), media: media)
    case .unknown: return .unknown
    }
}
