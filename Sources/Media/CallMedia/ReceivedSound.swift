internal import AudioKit
internal import Core
internal import Playout
internal import RTP
internal import Realtime

/// The peer's sound in a call: its packets in the jitter buffer, and the frames that take it from there. If the call is captured, all
/// that goes in is recorded, so that the call can be replayed.
struct ReceivedSound: ~Copyable {
    private var playout: PlayoutBuffer
    private var capture: CaptureWriter?
    private var latePackets = LatePacketWait()

    init(_ playout: consuming PlayoutBuffer, capture: consuming CaptureWriter?) {
        self.playout = playout
        self.capture = capture
    }

    /// What the jitter buffer has counted.
    var statistics: PlayoutStatistics {
        @_noAllocation @_noLocks get { playout.statistics }
    }

    /// Inputs that could not be recorded in time.
    @_noAllocation @_noLocks
    mutating func captureRecordsLost() -> Int { capture?.countLost() ?? 0 }

    // MARK: Packets. Views of datagrams are made in place. Unoptimised code counts the end of such a view as a deallocation, though
    // there is nothing to free, so these methods are not analysed; what they call is.

    /// Takes a packet of sound.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func insert(_ datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket) {
        let header = packet.header
        let payload = datagram.bytes.extracting(header.payload)
        playout.insert(
            payload: payload, number: packet.number, timestamp: header.timestamp, marker: header.marker,
            ssrc: header.ssrc, format: packet.format, arrival: packet.arrival)
        capture?.note(.packet, payload, header, format: packet.format, arrival: packet.arrival)
    }

    /// Takes a description of the noise in a pause (RFC 3389).
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func insertNoise(_ datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket) {
        let header = packet.header
        let payload = datagram.bytes.extracting(header.payload)
        playout.insertNoise(
            payload: payload, number: packet.number, timestamp: header.timestamp, ssrc: header.ssrc,
            format: packet.format, arrival: packet.arrival)
        capture?.note(.noise, payload, header, format: packet.format, arrival: packet.arrival)
    }

    /// Takes a packet that carries earlier frames in addition to its own (RFC 2198): each replaces a frame that did not arrive.
    ///
    /// - Returns: False if it is malformed.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func insertBlocks(
        of datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket, _ formats: ReceivedFormats
    ) -> Bool {
        let (header, arrival) = (packet.header, packet.arrival)
        let bytes = datagram.bytes
        guard let payload = RedundantPayload(header.payload, of: bytes) else { return false }
        // The oldest first, so that none seems to have come after one sent later.
        for index in 0..<payload.count {
            guard let block = payload.block(at: index, in: bytes) else { return false }
            guard let format = formats.format(ofBlock: block.payloadType) else { continue }
            let frame = bytes.extracting(block.data)
            if index == payload.count - 1 {
                playout.insert(
                    payload: frame, number: packet.number, timestamp: header.timestamp,
                    marker: header.marker, ssrc: header.ssrc, format: format, arrival: arrival)
                var sound = header
                sound.payloadType = block.payloadType
                capture?.note(.packet, frame, sound, format: format, arrival: arrival)
            } else {
                playout.insertCopy(
                    payload: frame, timestampOffset: UInt32(block.timestampOffset), number: packet.number,
                    timestamp: header.timestamp, ssrc: header.ssrc, format: format, arrival: arrival)
                capture?.note(
                    .copy, frame, header, format: format, timestampOffset: UInt32(block.timestampOffset),
                    arrival: arrival)
            }
        }
        return true
    }

    /// A packet has something else in place of sound, which is not waited for.
    @_noAllocation @_noLocks
    mutating func passOver(_ packet: ReceivedPacket) {
        playout.passOver(number: packet.number, ssrc: packet.header.ssrc)
        capture?.notePassOver(packet.header, at: packet.arrival)
    }

    /// Decodes by this decoder, too, and leaves one that is not needed any more in its place.
    ///
    /// - Parameter codecNumber: Its codec's index among all.
    /// - Returns: What packets of its format are known by here.
    @_noAllocation @_noLocks
    mutating func change(to decoder: inout StreamDecoder, codecNumber: Int) -> UInt8 {
        if !decoder.isEmpty { capture?.note(.change, Int64(codecNumber)) }
        return playout.change(to: &decoder)
    }

    // MARK: Frames

    /// Fills `frame` with the next `count` samples, for a frame that is due at `due`.
    ///
    /// - Returns: Whether any of it came from a packet: otherwise all is made up, as while the peer sends a telephone key.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func hear(into frame: inout SampleBuffer, _ count: Int, due: Instant) -> Bool {
        noteSettings()
        var samples = frame.mutableSamples(count)
        let pulled = playout.pull(into: &samples, at: due)
        capture?.notePull(samples.span, at: due)
        return pulled.hasReceivedSound(among: count)
    }

    /// Advances pulls from now on; delays them if the number is negative.
    @_noAllocation @_noLocks
    mutating func advancePulls(nanoseconds: Int64) {
        playout.advancePulls(nanoseconds: nanoseconds)
        capture?.note(.advance, nanoseconds)
    }

    /// By how many nanoseconds pulls of `samples` should come earlier, because packets wait.
    @_noAllocation @_noLocks
    func worthwhileAdvance(pullSamples samples: Int, due: Instant) -> Int64 {
        playout.worthwhileAdvance(pullSamples: samples, at: due)
    }

    /// Delays the frame that is due at `due`, and all after it, if a packet is just late.
    ///
    /// - Returns: By how many nanoseconds.
    @_noAllocation @_noLocks
    mutating func postponement(ofFrame samples: Int, due: Instant, at now: Instant) -> Int64 {
        let wait = latePackets.wait(for: playout, samples, due: due, at: now)
        if wait > 0 { advancePulls(nanoseconds: -wait) }
        return wait
    }

    /// Records that the frame due at `due` runs, and passes the next one's wait to the jitter buffer.
    ///
    /// - Returns: By how many nanoseconds earlier the next is to come, and with it, once this one has run, all pulls.
    @_noAllocation @_noLocks
    mutating func noteFrame(_ samples: Int, due: Instant) -> Int64 {
        let back = latePackets.noteRun(playout, samples)
        playout.pullPatienceNanoseconds = latePackets.patience(with: playout, samples, due: due)
        return back
    }

    // MARK: Packets that are missing (RFC 4585 §6.2.1)

    /// A packet that is sent again is expected to come after this time; nil if none is sent again.
    @_noAllocation @_noLocks
    mutating func setRepair(nanoseconds: Int64?) {
        playout.repairNanoseconds = nanoseconds
        noteSettings()
    }

    /// The next packet from `number` on that is missing, and can still come in time.
    @_noAllocation @_noLocks
    mutating func nextMissing(
        from number: Int64, nextPull: Instant, frameSamples: Int, at now: Instant
    ) -> MissingPacket? {
        playout.nextMissing(from: number, nextPull: nextPull, frameSamples: frameSamples, at: now)
    }

    /// When the next missing packet is to be asked for.
    var nextMissingAt: Instant? {
        @_noAllocation @_noLocks mutating get { playout.nextMissingAt }
    }

    /// A packet was asked for.
    @_noAllocation @_noLocks
    mutating func noteRequest(for missing: MissingPacket) {
        playout.noteRequest(for: missing)
        capture?.note(.request, missing.number)
    }

    @_noAllocation @_noLocks
    private mutating func noteSettings() {
        capture?.noteSettings(patience: playout.pullPatienceNanoseconds, repair: playout.repairNanoseconds)
    }
}
