public import Timekeeping

// Copies of packets that later ones carry (RFC 2198).
extension PlayoutBuffer {
    /// Takes a copy of an earlier packet that another carries. It is used if that packet has not come, and its sound is
    /// still to be played. Call it before the packet that carries the copy is inserted.
    ///
    /// The timestamp alone tells which packet it is a copy of: a sender may repeat any of its earlier packets.
    /// - Parameters:
    ///   - payload: The copy.
    ///   - timestampOffset: By how many ticks it is older than the packet that carries it.
    ///   - sequenceNumber: From the RTP header of the packet that carries it, as the three that follow.
    @_noAllocation @_noLocks
    public mutating func insertCopy(
        payload: RawSpan, timestampOffset: UInt32, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32,
        format: UInt8? = nil, arrival: Instant
    ) {
        let format = format ?? decoders.newestFormat
        let duration = decoders.samples(in: payload, of: format)
        // A copy from before a change comes with a packet from after it: its timestamp counts in other ticks.
        guard duration > 0, timestampOffset > 0, payload.byteCount <= PacketStore.blockSize,
            stream.isNumbered(by: format), let carrier = stream.number(of: sequenceNumber, ssrc: ssrc),
            let (sequence, time) = stream.place(
                ofCopy: timestampOffset, before: timestamp, duration, in: carrier, queue)
        else { return }
        delay.learn(
            fromCopyOf: sequence, in: carrier, transit: arrival.nanoseconds &- StreamClock.nanoseconds(samples: time),
            isMissing: stream.gap(before: sequence) >= 0)
        guard sequence >= nextSequence, !queue.contains(sequence), !queue.isSoundless(sequence) else { return }
        let entry = entry(sequence, time, payload, duration, format, arrival)
        statistics.packetsRepaired &+= 1
        keep(entry, payload)
    }
}
