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
        var payload = MediaSender.Payload.sound
        if isRedundant { payload = .redundantSound }
        if isNoise { payload = .comfortNoise }
        let length = sender.write(
            payload, bytes: payloadBytes, timestamp: timestamp, marker: marker, level: level, at: now, into: &packet,
            with: &protection)
        if length > 0 { noteSent(payloadBytes: payloadBytes, mediaTime: timestamp, at: now) }
        return length
    }

    /// Ticks a second of the telephone events that we send; nil if there are none.
    public var telephoneEventClockRate: Int? { sender.formats.kinds.firstEvents?.clockRate }

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
        guard let format = sender.formats.kinds.firstEvents else { return 0 }
        let (start, bytes) = (mediaHeaderBytes, TelephoneEventPayload.size)
        guard packet.byteCount >= start + bytes + Self.maximumProtectionBytes else { return 0 }
        var writer = ByteWriter(packet._mutatingExtracting(start..<(start + bytes)))
        event.payload.write(into: &writer)
        let length = sender.write(
            .telephoneEvent(payloadType: format.sendPayloadType), bytes: bytes, timestamp: event.timestamp,
            marker: event.marker, level: AudioLevel(attenuation: 127, isVoice: false), at: now, into: &packet,
            with: &protection)
        if length > 0 { noteSent(payloadBytes: bytes, mediaTime: mediaTime, at: now) }
        return length
    }

    /// A media packet of ours goes out.
    @_noAllocation @_noLocks
    private mutating func noteSent(payloadBytes: Int, mediaTime: UInt32, at now: Instant) {
        counters.packetsSent += 1
        counters.payloadBytesSent += payloadBytes
        reporter.sentMedia(payloadBytes: payloadBytes, timestamp: mediaTime, at: now)
        noteSent(at: now)
    }
}
