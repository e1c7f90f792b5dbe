internal import Core
internal import RTP

/// The sending side of a call's media: numbers packets, writes their headers, and keeps the newest for a peer that asks for
/// them again.
struct MediaSender: ~Copyable {
    private let inPlace = InPlace()
    private let ssrc: UInt32
    /// What is sent; later descriptions may change it.
    private(set) var formats: PeerFormats
    private var nextSequenceNumber: UInt16
    private var extensions: PacketExtensions
    private var sent: SentPackets?
    /// Whether the peer can ask for packets again.
    private(set) var keepsPackets: Bool
    /// When packets were sent over the transport, and what the peer has reported of them since it was last taken.
    private var transport = TransportLog()
    private var observation: PathObservation?

    init(_ plan: PeerPlan) {
        ssrc = plan.localSSRC
        formats = PeerFormats(plan)
        // The top bit clear: no wrap-around in the first 32,768 packets (RFC 3711 §3.3.1 on lost first packets).
        nextSequenceNumber = UInt16(truncatingIfNeeded: plan.randomSeed) & 0x7FFF
        extensions = PacketExtensions(plan.headerExtensions)
        keepsPackets = plan.repairsLoss
        if plan.repairsLoss { sent = SentPackets() }
    }

    /// What the payload of a packet is.
    enum Payload: BitwiseCopyable {
        case sound
        /// Sound that repeats earlier frames (RFC 2198).
        case redundantSound
        /// What the noise is like (RFC 3389).
        case comfortNoise
        /// An event of this format (RFC 4733).
        case telephoneEvent(payloadType: UInt8)
    }

    /// Bytes that a packet has before its payload.
    var headerBytes: Int {
        @_noAllocation @_noLocks get { RTPHeader.fixedSize + extensions.wireSize }
    }

    /// Whether packets carry their audio level (RFC 6464).
    var sendsAudioLevel: Bool {
        @_noAllocation @_noLocks get { extensions.hasAudioLevel }
    }

    /// The least time from a packet to the peer's feedback on its arrival; nil before there is any.
    var roundTripBoundNanoseconds: Int64? {
        @_noAllocation @_noLocks mutating get { transport.roundTripBoundNanoseconds }
    }

    /// Sends in other formats from the next packet on; memory for packets sent is exchanged if it is needed now.
    @_noAllocation @_noLocks
    mutating func change(to change: inout PeerChange) {
        formats = change.formats
        extensions.change(to: change.formats.extensions)
        guard formats.repairsLoss, !keepsPackets else { return }
        change.exchangeMemory(&sent)
        keepsPackets = true
    }

    /// Forgets the packets sent: the keys are others now, and the peer could not read them.
    @_noAllocation @_noLocks
    mutating func forgetSent() { sent?.removeAll() }

    /// Puts the header in front of a payload that lies behind ``headerBytes`` of `packet`, and protects both.
    ///
    /// - Returns: The packet's length; 0 if it could not be protected.
    @_noAllocation @_noLocks
    mutating func write(
        _ payload: Payload, bytes: Int, timestamp: UInt32, marker: Bool, level: AudioLevel, at now: Instant,
        into packet: inout MutableRawSpan, with protection: inout MediaProtection
    ) -> Int {
        guard packet.byteCount >= headerBytes else { return 0 }
        let number = nextSequenceNumber
        let header = RTPHeader(
            payloadType: payloadType(of: payload), sequenceNumber: number, timestamp: timestamp, ssrc: ssrc,
            marker: marker)
        var writer = ByteWriter(packet._mutatingExtracting(0..<headerBytes))
        let transportNumber = extensions.nextTransportNumber
        header.write(extensions.next(level), into: &writer)
        let plain = writer.count + bytes
        nextSequenceNumber &+= 1
        let length = protection.protect(&packet, length: plain)
        guard length > 0 else { return 0 }
        sent?.keep(packet, length: length, number: number)
        if let transportNumber { transport.sent(transportNumber, at: now) }
        return length
    }

    /// Writes a packet again, as it was sent before.
    ///
    /// - Returns: Its length; 0 if it is not to be sent again.
    @_noAllocation @_noLocks
    mutating func writeAgain(_ number: UInt16, roundTrip: Int64?, at now: Instant, into packet: inout MutableRawSpan)
        -> Int
    {
        let length = sent?.write(number, roundTrip: roundTrip, at: now, into: &packet) ?? 0
        // Both numbers rise by one with each packet.
        if length > 0, let next = extensions.nextTransportNumber {
            transport.sentAgain(next &- (nextSequenceNumber &- number))
        }
        return length
    }

    /// Takes what the peer reports in `datagram` of our packets' arrival.
    @_noAllocation @_noLocks
    mutating func receivedFeedback(_ datagram: borrowing MutableRawSpan, at arrival: Instant) throws(RTCPParseError) {
        observation = try readArrivals(datagram, &transport, at: arrival) ?? observation
    }

    /// What feedback has reported of our packets' arrival, once.
    @_noAllocation @_noLocks
    mutating func takeObservation() -> PathObservation? {
        let taken = observation
        observation = nil
        return taken
    }

    @_noAllocation @_noLocks
    private mutating func payloadType(of payload: Payload) -> UInt8 {
        switch payload {
        case .sound: return formats.sendPayloadType
        case .redundantSound:
            guard let redundancy = formats.kinds.redundancy else { return formats.sendPayloadType }
            return redundancy.sendPayloadType
        case .comfortNoise:
            guard let noise = formats.sendComfortNoisePayloadType else { return formats.sendPayloadType }
            return noise
        case .telephoneEvent(let payloadType): return payloadType
        }
    }
}

// Looks at a datagram without changing it; see the end of PeerSession.swift.
@_semantics("no_performance_analysis") @inline(__always)
private func readArrivals(
    _ datagram: borrowing MutableRawSpan, _ log: inout TransportLog, at arrival: Instant
) throws(RTCPParseError) -> PathObservation? {
    try log.received(datagram.bytes, at: arrival)
}
