internal import AudioKit
internal import Playout
internal import RTP
internal import Realtime
internal import Core

/// Replays a capture: the jitter buffer gets the inputs of the call at the same times, and so produces the same sound.
struct CaptureReplay: ~Copyable {
    private var buffer: PlayoutBuffer
    private var frame = SampleBuffer(capacity: 2_880)
    private let baseNanoseconds: Int64
    private var result = StreamReplay.Result()
    private var comparison: StreamReplay.Comparison
    private var pulled = 0
    private var numbers = StreamNumbers()

    /// The call that a recording is a capture of; nil if it is not a capture.
    init?(_ recording: PacketRecording) throws {
        guard let first = recording.packets.first, first.destinationPort == CaptureNote.port,
            case .start(let codec, let playout, let base, let decoder)? = CaptureNote(parsing: first.bytes)
        else { return nil }
        buffer = PlayoutBuffer(configuration: playout, stream: try codec.makeDecoder())
        baseNanoseconds = base
        comparison = StreamReplay.Comparison(decoder: decoder)
    }

    consuming func run(_ recording: PacketRecording) throws -> StreamReplay.Result {
        for packet in recording.packets.dropFirst() {
            let (at, overflows) = baseNanoseconds.addingReportingOverflow(packet.offsetNanoseconds)
            guard !overflows, at >= 0 else {
                result.otherPackets += 1
                continue
            }
            let time = Instant(nanoseconds: at)
            if packet.destinationPort == CaptureNote.port, let note = CaptureNote(parsing: packet.bytes) {
                try take(note, at: time)
            } else if !insert(packet, at: time) {
                result.otherPackets += 1
            }
        }
        result.statistics = buffer.statistics
        result.comparison = comparison
        return result
    }

    private mutating func take(_ note: CaptureNote, at time: Instant) throws {
        switch note {
        case .start: result.otherPackets += 1
        case .pull(let count, let checksum): pull(count, checksum, at: time)
        case .advance(let nanoseconds): buffer.advancePulls(nanoseconds: nanoseconds)
        case .patience(let nanoseconds): buffer.pullPatienceNanoseconds = nanoseconds
        case .repair(let nanoseconds): buffer.repairNanoseconds = nanoseconds
        case .request(let number): buffer.noteRequest(for: MissingPacket(number: number, dueAt: time))
        case .passOver(let sequenceNumber, let ssrc):
            buffer.passOver(number: numbers.extend(sequenceNumber, of: ssrc), ssrc: ssrc)
        case .change(let codec):
            var decoder = try codec.makeDecoder()
            _ = buffer.change(to: &decoder)
        case .copy(let offset, let sequenceNumber, let timestamp, let ssrc, let format, let payload):
            unsafe buffer.insertCopy(
                payload: payload.span.bytes, timestampOffset: offset,
                number: numbers.extend(sequenceNumber, of: ssrc), timestamp: timestamp, ssrc: ssrc, format: format,
                arrival: time)
        case .lost(let count): comparison.recordsLost += count
        }
    }

    private mutating func insert(_ packet: PacketRecording.Packet, at time: Instant) -> Bool {
        guard packet.destinationPort == CaptureNote.mediaPort,
            let (format, isNoise) = CaptureNote.format(ofPort: packet.sourcePort),
            let header = try? RTPHeader(parsing: unsafe packet.bytes.span.bytes)
        else { return false }
        result.ssrc = header.ssrc
        if !isNoise { result.payloadType = header.payloadType }
        let payload = unsafe packet.bytes.span.bytes.extracting(header.payload)
        let number = numbers.extend(header.sequenceNumber, of: header.ssrc)
        if isNoise {
            buffer.insertNoise(
                payload: payload, number: number, timestamp: header.timestamp, ssrc: header.ssrc,
                format: format, arrival: time)
        } else {
            buffer.insert(
                payload: payload, number: number, timestamp: header.timestamp,
                marker: header.marker, ssrc: header.ssrc, format: format, arrival: time)
        }
        return true
    }

    private mutating func pull(_ count: Int, _ told: SampleChecksum, at time: Instant) {
        Self.pull(&buffer, &frame, count, at: time, into: &result)
        pulled += count
        comparison.pulls += 1
        if told != result.checksum, comparison.firstDifferenceMilliseconds == nil {
            comparison.firstDifferenceMilliseconds = Double(pulled - count) / 48
        }
    }

    private static func pull(
        _ buffer: inout PlayoutBuffer, _ frame: inout SampleBuffer, _ count: Int, at time: Instant,
        into result: inout StreamReplay.Result
    ) {
        var room = frame.mutableSamples(count)
        _ = buffer.pull(into: &room, at: time)
        for index in 0..<room.count { result.samples.append(room[index]) }
        result.checksum.add(room.span)
    }
}

/// Extends the sequence numbers of a recorded stream as they were extended in the call: a call starts over with each stream
/// that takes over.
struct StreamNumbers {
    private var ssrc: UInt32?
    private var unwrapper = SequenceUnwrapper()

    mutating func extend(_ sequenceNumber: UInt16, of ssrc: UInt32) -> Int64 {
        if ssrc != self.ssrc { unwrapper = SequenceUnwrapper() }
        self.ssrc = ssrc
        return unwrapper.unwrap(sequenceNumber)
    }
}
