internal import Realtime
internal import Core
internal import Playout
internal import RTP

// Telephone keys of a call.
extension MediaCall {
    /// Sends a key in place of sound, after the waiting ones.
    @_noAllocation @_noLocks
    package mutating func press(_ code: UInt8) {
        if digits.press(code) { counters.digitsSent += 1 } else { counters.digitsDropped += 1 }
    }

    /// The next key of the peer that has not been reported.
    @_noAllocation @_noLocks
    package mutating func takeDigit() -> DigitExchange.Digit? {
        guard let digit = digits.takeHeard() else { return nil }
        counters.digitsReceived += 1
        return digit
    }

    /// Takes a packet with an event of the peer; the playout need not wait for sound in its place.
    @_noAllocation @_noLocks
    mutating func receiveEvent(_ datagram: borrowing MutableRawSpan, _ packet: ReceivedPacket, clockRate: Int) {
        let header = packet.header
        playout.passOver(number: packet.number, ssrc: header.ssrc)
        capture?.notePassOver(header, at: packet.arrival)
        guard receives, let payload = eventPayload(datagram, header) else { return }
        digits.receive(
            payload, number: packet.number, timestamp: header.timestamp, ssrc: header.ssrc, clockRate: clockRate,
            at: packet.arrival)
    }

    /// Sends the telephone event that replaces this frame, if there is one.
    ///
    /// - Returns: Whether it does.
    @_noAllocation @_noLocks
    mutating func sendEvent(
        by path: MediaPath, at now: Instant, batch: inout DatagramBatch
    ) -> Bool {
        guard let event = digits.next(at: timestamp) else { return false }
        var packet = batch.freePacket(by: path)
        let length = peer.writeTelephoneEvent(event, mediaTime: timestamp, at: now, into: &packet)
        batch.commitPacket(byteCount: length, by: path)
        soundLimit.sent(bytes: length, at: now)
        // The following sound is a new talk spurt.
        marker = true
        // Copies are of the packets directly before theirs.
        redundancy.reset()
        return true
    }
}

// Looks at a datagram without changing it; see the end of MediaCall.swift.
@_semantics("no_performance_analysis") @inline(__always)
private func eventPayload(_ datagram: borrowing MutableRawSpan, _ header: RTPHeader) -> TelephoneEventPayload? {
    TelephoneEventPayload(header.payload, of: datagram.bytes)
}
