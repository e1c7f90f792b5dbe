internal import Core
internal import AudioKit
internal import Playout
internal import RTP

// Frames that are sent twice (RFC 2198), and what the peer's reports make of our sending.
extension MediaCall {
    /// Takes a packet that carries earlier frames in addition to its own: each replaces a frame that did not arrive.
    @_noAllocation @_noLocks
    mutating func receiveRedundant(_ datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket) {
        guard receives else { return }
        if !insertBlocks(of: datagram, packet, peer.received, into: &playout, &capture) {
            counters.payloadsMalformed += 1
        }
    }

    /// Takes the peer's feedback on our stream.
    @_noAllocation @_noLocks
    mutating func takeFeedback(at arrival: Instant) {
        var isChanged = false
        if let seen = peer.takeObservation(), control.feedback.observed(seen, at: arrival) { isChanged = true }
        let missing = peer.takeMissing()
        if missing > 0 { watchForRepairs() }
        if control.feedback.asked(missing: missing, packetsSent: peer.packetsSent, at: arrival) { isChanged = true }
        if let report = peer.takeReport() {
            let roundTrip = peer.roundTripNanoseconds
            let steers = control.reported(
                report, roundTripNanoseconds: roundTrip, packetsSent: peer.packetsSent, at: arrival)
            if steers { isChanged = true }
        }
        if isChanged { protect() }
    }

    /// How many earlier frames each packet repeats. None while the peer can ask for what it misses and has it within
    /// 150 ms: copies take bits from the sound, and with both the jitter buffer changes its delay too often.
    @_noAllocation @_noLocks
    mutating func chooseCopies() -> Int {
        let roundTrip = peer.roundTripNanoseconds ?? .max
        return peer.resendsPackets && roundTrip <= 150_000_000 ? 0 : control.redundancyDepth
    }

    /// Sends as the control says from the next frame on.
    @_noAllocation @_noLocks
    private mutating func protect() {
        encoder.set(bitrateBps: control.bitrateBps)
        encoder.set(expectedLossPercent: max(leastExpectedLossPercent, control.expectedLossPercent))
        guard peer.takesRedundancy else { return }
        redundancy.depth = chooseCopies()
        control.feedback.noteRedundancy(redundancy.depth > 0)
        // The stored frame will not be the previous one when redundancy begins again.
        if redundancy.depth == 0 { redundancy.reset() }
    }
}

/// Size of a frame before it is put into a packet: the longest possible (RFC 6716 §3.2.1).
typealias EncodedFrame = InlineArray<1_275, UInt8>

extension RedundancyWriter {
    /// Writes a frame, and those to be repeated, as a payload into `room` of `packet`.
    ///
    /// Makes views of memory in place, which neither allocates nor locks; what it calls is analysed.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func write(
        _ frame: borrowing EncodedFrame, count: Int, payloadType: UInt8, timestamp: UInt32,
        into packet: inout MutableRawSpan, _ room: Range<Int>
    ) -> Int {
        var payload = packet._mutatingExtracting(room)
        return unsafe write(
            frame.span.bytes.extracting(0..<count), payloadType: payloadType, timestamp: timestamp, into: &payload)
    }
}

// Looks at a datagram without changing it; see the end of MediaCall.swift. False if it is malformed.
@_semantics("no_performance_analysis") @inline(__always)
private func insertBlocks(
    of datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket, _ formats: ReceivedFormats,
    into playout: inout PlayoutBuffer, _ capture: inout CaptureWriter?
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
                .copy, frame, header, format: format, timestampOffset: UInt32(block.timestampOffset), arrival: arrival)
        }
    }
    return true
}
