public import RTP
public import Core

/// The receiving side of a call's media: which of the peer's streams counts, and what its payload types denote.
struct MediaReceiver {
    private let localSSRC: UInt32
    /// The SSRC that the peer sends with; nil until it is known.
    private(set) var remoteSSRC: UInt32?
    /// The formats of the peer's payload types.
    private(set) var formats: ReceivedFormats
    private var streams = StreamSelector()

    init(_ plan: PeerPlan) {
        localSSRC = plan.localSSRC
        remoteSSRC = plan.remoteSSRC
        formats = ReceivedFormats(PayloadKinds(plan))
    }

    /// What a packet is to the stream that the peer is heard by.
    enum Verdict: BitwiseCopyable {
        /// Of this stream; newest: ahead of all of it before.
        case current(isNewest: Bool)
        /// The first of a stream that counts from now on.
        case takesOver
        /// Of a stream that does not count.
        case ofOtherStream
        /// Sent by this side (RFC 3550 §8.2).
        case looped
    }

    /// Accepts packets in these formats from now on, and those in the formats before that still come (RFC 3264 §8.3.2).
    ///
    /// - Parameter decoder: The number of the format that the playout has given to the sound.
    @_noAllocation @_noLocks
    mutating func expect(_ kinds: PayloadKinds, decoder: UInt8) {
        formats.change(to: kinds, format: decoder)
    }

    /// The content of a packet; nil if its number was not agreed on.
    @_noAllocation @_noLocks
    mutating func take(_ header: RTPHeader) -> (kind: PayloadKinds.Kind, in: PayloadKinds)? {
        formats.take(header.payloadType, bytes: header.payload.count)
    }

    /// Whether a packet is of the stream that the peer is known to send.
    @_noAllocation @_noLocks
    mutating func isOfStream(_ header: RTPHeader) -> Bool { remoteSSRC == header.ssrc }

    /// Forgets the streams of before, so that the next packet's stream counts at once.
    @_noAllocation @_noLocks
    mutating func forgetStreams() { streams = StreamSelector() }

    /// Takes note of a packet, and says whether it counts.
    @_noAllocation @_noLocks
    mutating func receive(_ header: RTPHeader, at arrival: Instant) -> Verdict {
        guard header.ssrc != localSSRC else { return .looped }
        switch streams.receive(ssrc: header.ssrc, sequenceNumber: header.sequenceNumber, at: arrival) {
        case .current(let isNewest): return .current(isNewest: isNewest)
        case .takesOver:
            remoteSSRC = header.ssrc
            return .takesOver
        case .ignored: return .ofOtherStream
        }
    }
}

/// A media packet of the peer, and what is known of it since it was accepted.
public struct ReceivedPacket: Equatable, Sendable {
    /// Its header; `header.payload` says where in the datagram, now plain, the payload lies.
    public let header: RTPHeader
    /// Its sequence number, extended so that it never wraps: see ``ReceptionStatistics/Arrival/number``.
    public let number: Int64
    /// The number of the format that its payload type belongs to: what its sound or noise is decoded with.
    public let format: UInt8
    /// When the kernel took it in.
    public let arrival: Instant

    @_noAllocation @_noLocks
    init(_ header: RTPHeader, number: Int64, format: UInt8, arrival: Instant) {
        self.header = header
        self.number = number
        self.format = format
        self.arrival = arrival
    }
}
