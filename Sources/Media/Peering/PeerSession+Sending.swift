internal import Bytes
public import RTP
public import Timekeeping

// Media that goes out.
extension PeerSession {
    /// Puts the header in front of a payload that lies behind ``mediaHeaderBytes`` of `packet`, and protects both.
    ///
    /// - Parameters:
    ///   - timestamp: Media time, in ticks of the codec.
    ///   - isRedundant: The payload is one of those that repeat earlier frames, which the peer must take.
    ///   - isNoise: The payload describes noise (RFC 3389), which the peer must take.
    ///   - level: How loud the payload is, for packets that tell.
    ///   - packet: Has ``maximumProtectionBytes`` of room behind the payload.
    /// - Returns: The packet's length; 0 if it could not be protected.
    @_noAllocation @_noLocks
    public mutating func writeMedia(
        payloadBytes: Int, timestamp: UInt32, marker: Bool, isRedundant: Bool = false, isNoise: Bool = false,
        level: AudioLevel = AudioLevel(attenuation: 127, isVoice: false),
        at now: Instant, into packet: inout MutableRawSpan
    ) -> Int {
        var payloadType = sending.sendPayloadType
        if isRedundant, let redundancy = sending.kinds.redundancy { payloadType = redundancy.sendPayloadType }
        if isNoise, let noise = sending.sendComfortNoisePayloadType { payloadType = noise }
        let header = RTPHeader(
            payloadType: payloadType, sequenceNumber: nextSequenceNumber, timestamp: timestamp,
            ssrc: plan.localSSRC, marker: marker)
        return finish(header, payloadBytes: payloadBytes, mediaTime: timestamp, level: level, at: now, in: &packet)
    }

    /// Ticks a second of the telephone events that we send; nil if there are none.
    public var telephoneEventClockRate: Int? { sending.kinds.firstEvents?.clockRate }

    /// Writes a packet of a telephone event, and protects it.
    ///
    /// - Parameters:
    ///   - mediaTime: Where our sound would be, which reports tell.
    ///   - packet: Has ``maximumProtectionBytes`` of room behind header and payload.
    /// - Returns: The packet's length; 0 if it could not be protected, or events were not agreed on.
    @_noAllocation @_noLocks
    public mutating func writeTelephoneEvent(
        _ event: TelephoneEventSender.Packet, mediaTime: UInt32, at now: Instant, into packet: inout MutableRawSpan
    ) -> Int {
        guard let format = sending.kinds.firstEvents else { return 0 }
        let header = RTPHeader(
            payloadType: format.sendPayloadType, sequenceNumber: nextSequenceNumber, timestamp: event.timestamp,
            ssrc: plan.localSSRC, marker: event.marker)
        let start = mediaHeaderBytes
        guard packet.byteCount >= start + TelephoneEventPayload.size + Self.maximumProtectionBytes else { return 0 }
        var writer = ByteWriter(packet._mutatingExtracting(start..<(start + TelephoneEventPayload.size)))
        event.payload.write(into: &writer)
        return finish(
            header, payloadBytes: TelephoneEventPayload.size, mediaTime: mediaTime,
            level: AudioLevel(attenuation: 127, isVoice: false), at: now, in: &packet)
    }

    /// Puts the header in front, protects, and counts.
    @_noAllocation @_noLocks
    private mutating func finish(
        _ header: RTPHeader, payloadBytes: Int, mediaTime: UInt32, level: AudioLevel, at now: Instant,
        in packet: inout MutableRawSpan
    ) -> Int {
        guard packet.byteCount >= mediaHeaderBytes else { return 0 }
        var writer = ByteWriter(packet._mutatingExtracting(0..<mediaHeaderBytes))
        let transportNumber = extensions.nextTransportNumber
        header.write(extensions.next(level), into: &writer)
        let headerBytes = writer.count
        nextSequenceNumber &+= 1
        let plain = headerBytes + payloadBytes
        let length = protection.protect(&packet, length: plain)
        guard length > 0 else { return 0 }
        kept?.keep(packet, length: length, number: header.sequenceNumber)
        if let transportNumber { transport.sent(transportNumber, at: now) }
        counters.packetsSent += 1
        counters.payloadBytesSent += payloadBytes
        rtcp.sentMedia(payloadOctets: payloadBytes, timestamp: mediaTime, at: now)
        noteSent(at: now)
        return length
    }
}
