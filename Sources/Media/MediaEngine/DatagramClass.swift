internal import Core
internal import RTP
internal import ICE

/// What a worker has to know of a datagram to find its call.
enum DatagramClass: BitwiseCopyable {
    /// RTP, or RTCP (control), of this sender.
    case media(ssrc: UInt32, isControl: Bool)
    /// The same, relayed by a TURN server: the bytes from `start` to `end`, through `channel`
    /// (RFC 8656 §12.4) or in a Data indication (§11.4).
    case relayedMedia(ssrc: UInt32, isControl: Bool, start: Int, end: Int, channel: UInt16?)
    /// STUN or DTLS, relayed or not.
    case connectivity
    /// Nothing that belongs here.
    case unknown
}

// Looks at a datagram without changing it. Unoptimised code counts the end of such a view as a deallocation, though
// there is nothing to free, so this is not analysed; what it calls is.
@_semantics("no_performance_analysis") @inline(__always)
func demultiplex(at datagram: borrowing MutableRawSpan) -> DatagramClass {
    let bytes = datagram.bytes
    switch DatagramKind(of: bytes) {
    case .rtp: return bytes.uint32(at: 8).map { .media(ssrc: $0, isControl: false) } ?? .unknown  // RFC 3550 §5.1
    case .rtcp: return bytes.uint32(at: 4).map { .media(ssrc: $0, isControl: true) } ?? .unknown  // RFC 3550 §6.4
    case .dtls: return .connectivity
    case .stun:
        // A peer may send before it is known that we have a channel to it.
        guard let data = STUNPeek.relayedData(bytes) else { return .connectivity }
        return relayed(bytes, data.lowerBound, data.upperBound, channel: nil)
    case .turnChannel:
        guard let channel = bytes.uint16(at: 0), let length = bytes.uint16(at: 2), Int(length) + 4 <= bytes.byteCount
        else { return .unknown }
        return relayed(bytes, 4, 4 + Int(length), channel: channel)
    case .unknown: return .unknown
    }
}

// As above.
@_semantics("no_performance_analysis") @inline(__always)
private func relayed(_ bytes: RawSpan, _ start: Int, _ end: Int, channel: UInt16?) -> DatagramClass {
    let data = bytes.extracting(start..<end)
    let (media, isControl): (UInt32?, Bool)
    switch DatagramKind(of: data) {
    case .rtp: (media, isControl) = (data.uint32(at: 8), false)
    case .rtcp: (media, isControl) = (data.uint32(at: 4), true)
    case .stun, .dtls, .turnChannel, .unknown: (media, isControl) = (nil, false)
    }
    guard let media else { return .connectivity }
    return .relayedMedia(ssrc: media, isControl: isControl, start: start, end: end, channel: channel)
}
