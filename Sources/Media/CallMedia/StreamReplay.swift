internal import AudioKit
public import Playout
public import RTP
internal import Realtime
internal import Core

/// Plays a recorded RTP stream through the jitter buffer and decoder in virtual time: the sound that a device would
/// have played.
public struct StreamReplay: Sendable {
    /// Replay this SSRC; nil takes the one with the most packets.
    public var ssrc: UInt32?
    /// Replay this payload type only; nil takes the one that the stream has most of.
    public var payloadType: UInt8?
    /// How the stream is played out.
    public var playout = PlayoutConfiguration()
    /// Samples pulled at a time; 960 is a tick of 20 ms.
    public var frameSamples = 960

    /// Replays the busiest stream.
    public init() {}

    /// The result of a replay.
    public struct Result: Sendable {
        /// What a device would have played: mono, 48 kHz.
        public var samples: [Int16] = []
        /// Statistics of the jitter buffer.
        public var statistics = PlayoutStatistics()
        /// The stream that was replayed.
        public var ssrc: UInt32 = 0
        /// Its payload type.
        public var payloadType: UInt8 = 0
        /// Packets of the recording that are not of this stream, or no RTP.
        public var otherPackets = 0
        /// Of ``samples``. Decoded samples depend on the version of libopus, and on the kind of processor.
        public var checksum = SampleChecksum()
        /// Comparison with the sound that the device played; nil if the recording is not a capture.
        public var comparison: Comparison?
    }

    /// How the replay of a capture compares with the call.
    public struct Comparison: Equatable, Sendable {
        /// What decoded the call, such as `libopus 1.3.1`.
        public var decoder: String
        /// Times that the device took sound.
        public var pulls = 0
        /// Position in milliseconds from which the sound differs from that of the device; nil if all of it is equal.
        public var firstDifferenceMilliseconds: Double?
        /// Inputs that the device could not record in time. From there on the sound may differ.
        public var recordsLost = 0

        /// Whether every sample equals that of the device.
        public var isSame: Bool { pulls > 0 && firstDifferenceMilliseconds == nil }
    }

    /// Whether `recording` is a capture, which is replayed as its call went, without regard to the options here.
    public static func isCapture(_ recording: PacketRecording) -> Bool {
        guard let first = recording.packets.first, first.destinationPort == CaptureNote.port,
            case .start? = CaptureNote(parsing: first.bytes)
        else { return false }
        return true
    }

    /// Replays `recording`: a capture with the call's own timing, any other recording on a virtual clock.
    ///
    /// - Returns: nil if it holds no RTP packet that fits.
    public func run(_ recording: PacketRecording) throws -> Result? {
        if let capture = try CaptureReplay(recording) { return try capture.run(recording) }
        guard let stream = chooseStream(recording) else { return nil }
        var buffer = PlayoutBuffer(configuration: playout, decoder: try OpusDecoder())
        var result = Result(ssrc: stream.ssrc, payloadType: stream.payloadType)
        var frame = SampleBuffer(capacity: frameSamples)
        let period = Int64(frameSamples) * 1_000_000_000 / 48_000
        var numbers = StreamNumbers()
        var now = Instant(nanoseconds: recording.packets.first?.offsetNanoseconds ?? 0)
        for packet in recording.packets {
            guard let header = Self.header(of: packet), stream.matches(header) else {
                result.otherPackets += 1
                continue
            }
            let arrival = Instant(nanoseconds: packet.offsetNanoseconds)
            while now < arrival {
                Self.pull(&buffer, &frame, at: now, into: &result.samples)
                now = now.advanced(byNanoseconds: period)
            }
            buffer.insert(
                payload: unsafe packet.bytes.span.bytes.extracting(header.payload),
                number: numbers.extend(header.sequenceNumber, of: header.ssrc), timestamp: header.timestamp,
                marker: header.marker, ssrc: header.ssrc, arrival: arrival)
        }
        // Waiting sound is played at the end too: at most a second.
        for _ in 0..<(48_000 / frameSamples) {
            Self.pull(&buffer, &frame, at: now, into: &result.samples)
            now = now.advanced(byNanoseconds: period)
        }
        result.statistics = buffer.statistics
        var checksum = SampleChecksum()
        checksum.add(result.samples.span)
        result.checksum = checksum
        return result
    }

    private struct Stream: Hashable {
        var ssrc: UInt32
        var payloadType: UInt8

        func matches(_ header: RTPHeader) -> Bool { header.ssrc == ssrc && header.payloadType == payloadType }
    }

    private func chooseStream(_ recording: PacketRecording) -> Stream? {
        var counts: [Stream: Int] = [:]
        for packet in recording.packets {
            guard let header = Self.header(of: packet), ssrc == nil || header.ssrc == ssrc,
                payloadType == nil || header.payloadType == payloadType
            else { continue }
            counts[Stream(ssrc: header.ssrc, payloadType: header.payloadType), default: 0] += 1
        }
        return counts.max { ($0.value, $1.key.ssrc) < ($1.value, $0.key.ssrc) }?.key
    }

    private static func header(of packet: PacketRecording.Packet) -> RTPHeader? {
        let bytes = unsafe packet.bytes.span.bytes
        guard DatagramKind(of: bytes) == .rtp else { return nil }
        return try? RTPHeader(parsing: bytes)
    }

    private static func pull(
        _ buffer: inout PlayoutBuffer, _ frame: inout SampleBuffer, at now: Instant, into samples: inout [Int16]
    ) {
        var room = frame.mutableSamples(frame.capacity)
        _ = buffer.pull(into: &room, at: now)
        for index in 0..<room.count { samples.append(room[index]) }
    }
}
