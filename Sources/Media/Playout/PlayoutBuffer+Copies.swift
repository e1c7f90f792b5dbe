public import Timekeeping

// Copies of packets that later ones carry (RFC 2198).
extension PlayoutBuffer {
    /// Takes a copy of an earlier packet that another carries. It is used if that packet has not arrived, and its sound
    /// has not been played yet. Call it before the packet that carries the copy is inserted.
    ///
    /// The timestamp alone tells which packet it is a copy of: a sender may repeat any of its earlier packets.
    /// - Parameters:
    ///   - payload: The copy.
    ///   - timestampOffset: By how many RTP ticks it is older than the packet that carries it.
    ///   - sequenceNumber: From the RTP header of the packet that carries it, like the next three.
    @_noAllocation @_noLocks
    public mutating func insertCopy(
        payload: RawSpan, timestampOffset: UInt32, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32,
        format: UInt8? = nil, arrival: Instant
    ) {
        let format = format ?? newestFormat
        let duration = samples(in: payload, of: format)
        // A copy from before a change comes with a packet from after it: its timestamp counts in other ticks.
        guard duration > 0, timestampOffset > 0, format == clockFormat,
            payload.byteCount <= PacketStore.blockSize, hasStream, self.ssrc == ssrc, receivedNanoseconds > 0,
            let carrier = clock.peek(sequence: sequenceNumber), abs(carrier &- endSequence) <= Self.sequenceJump,
            let time = clock.peek(timestamp: timestamp &- timestampOffset)
        else { return }
        let age = Int64(timestampOffset) &* clock.samplesPerTick / Int64(duration)
        guard let sequence = place(ofCopyFrom: time, duration, age: age, before: carrier) else { return }
        carried.note(sequence, in: carrier)
        if sequence >= endOfArrivals {
            // The packet itself is missing: what waiting for the copy would be worth.
            let transit = arrival.nanoseconds &- Self.nanoseconds(samples: time)
            history.recordRestorable(delay: transit &- history.baseline, share: 1)
        }
        guard sequence >= nextSequence, store.entry(sequence) == nil, !soundless.contains(sequence) else { return }
        let entry = entry(sequence, time, payload, duration, format, arrival)
        statistics.packetsRepaired &+= 1
        keep(entry, payload)
    }

    /// The number of the packet that holds the sound from `time` on; nil if none can.
    ///
    /// - Parameter age: How many packets before `carrier` that is, if the sender was not silent in between.
    @_noAllocation @_noLocks
    private func place(ofCopyFrom time: Int64, _ duration: Int, age: Int64, before carrier: Int64) -> Int64? {
        guard age >= 1 else { return nil }
        var sequence = carrier &- age
        if carrier > endOfArrivals, time >= endOfArrivalsTimestamp {
            // It lies in the gap before the carrier. A pause makes timestamps go on without numbers.
            sequence = max(sequence, endOfArrivals)
        }
        guard sequence < carrier else { return nil }
        if let before = store.entry(sequence &- 1), before.timestamp &+ Int64(before.samples) > time { return nil }
        if let after = store.entry(sequence &+ 1), after.timestamp < time &+ Int64(duration) { return nil }
        return sequence
    }
}
