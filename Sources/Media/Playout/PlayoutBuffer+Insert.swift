public import Timekeeping

extension PlayoutBuffer {
    /// A media time that is off by more than this belongs to another stream.
    private static var timestampJumpNanoseconds: Int64 { @_noAllocation @_noLocks get { 3_000_000_000 } }
    /// A sequence number that is off by more than this does too.
    private static var sequenceJump: Int64 { @_noAllocation @_noLocks get { 1_500 } }

    /// Takes one packet, copying its payload. Nothing a peer sends can trap.
    ///
    /// - Parameters:
    ///   - payload: One Opus packet, without RTP header and padding.
    ///   - sequenceNumber: From the RTP header.
    ///   - timestamp: From the RTP header, at 48 kHz (RFC 7587 §4.1).
    ///   - marker: From the RTP header; the first packet after silence has it set. Not relied upon.
    ///   - ssrc: From the RTP header; another one starts the buffer afresh.
    ///   - format: Which of the formats that ``change(to:)`` has counted the packet is of; nil: the newest.
    ///   - arrival: When the packet came, as exactly as is known: by the kernel's timestamp if there is one.
    @_noAllocation @_noLocks
    public mutating func insert(
        payload: RawSpan, sequenceNumber: UInt16, timestamp: UInt32, marker: Bool, ssrc: UInt32, format: UInt8? = nil,
        arrival: Instant
    ) {
        let format = format ?? newestFormat
        insert(
            payload, samples(in: payload, of: format), isNoise: false, format, sequenceNumber, timestamp, ssrc, arrival)
    }

    /// Takes one packet of comfort noise (RFC 3389): the sender is silent from then on. For streams of G.711.
    ///
    /// Parameters are those of ``insert(payload:sequenceNumber:timestamp:marker:ssrc:arrival:)``.
    @_noAllocation @_noLocks
    public mutating func insertNoise(
        payload: RawSpan, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32, format: UInt8? = nil,
        arrival: Instant
    ) {
        // Played for as long as a frame; what follows goes on by itself.
        insert(
            payload, Self.noiseSamples, isNoise: true, format ?? newestFormat, sequenceNumber, timestamp, ssrc, arrival)
    }

    /// 10 ms: senders may go on with sound that soon.
    private static var noiseSamples: Int { @_noAllocation @_noLocks get { 480 } }

    @_noAllocation @_noLocks
    private mutating func insert(
        _ payload: RawSpan, _ duration: Int, isNoise: Bool, _ format: UInt8, _ sequenceNumber: UInt16,
        _ timestamp: UInt32, _ ssrc: UInt32, _ arrival: Instant
    ) {
        statistics.packetsReceived &+= 1
        guard payload.byteCount > 0 else { return passOver(sequenceNumber, ssrc, isPadding: true) }
        guard duration > 0, payload.byteCount <= PacketStore.blockSize else {
            statistics.packetsDiscarded &+= 1
            return
        }
        if hasStream, self.ssrc != ssrc { startAfresh(with: format) }
        self.ssrc = ssrc
        hasStream = true
        guard var extended = extend(sequenceNumber, timestamp, of: format, arrival) else {
            statistics.packetsDiscarded &+= 1
            return
        }
        if isJump(extended, arrival) {
            startAfresh(with: format)
            extended = clock.extend(sequence: sequenceNumber, timestamp: timestamp)
        }

        var entry = entry(extended.sequence, extended.timestamp, payload, duration, format, arrival)
        if isNoise {
            entry.isNoise = true
            entry.isDiscontinuous = true
            entry.restorableSamples = 0
        }
        take(entry, payload)
    }

    /// Takes a copy of a packet that a later one carries (RFC 2198): it is of use if that packet has not come, and sound
    /// in its place is still to be played. To be inserted before the packet that carries it.
    @_noAllocation @_noLocks
    public mutating func insertCopy(
        payload: RawSpan, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32, format: UInt8? = nil,
        arrival: Instant
    ) {
        let format = format ?? newestFormat
        let duration = samples(in: payload, of: format)
        // A copy from before a change comes with a packet from after it: its timestamp counts in other ticks.
        guard duration > 0, format == clockFormat, payload.byteCount <= PacketStore.blockSize, hasStream,
            self.ssrc == ssrc,
            receivedNanoseconds > 0, let sequence = clock.peek(sequence: sequenceNumber),
            let time = clock.peek(timestamp: timestamp), abs(sequence &- endSequence) <= Self.sequenceJump
        else { return }
        let entry = entry(sequence, time, payload, duration, format, arrival)
        if sequence >= endSequence {
            // The packet itself is missing: what waiting for the copy would be worth.
            let transit = arrival.nanoseconds &- Self.nanoseconds(samples: time)
            history.recordRestorable(delay: transit &- history.baseline, share: 1)
        }
        guard sequence >= nextSequence, store.entry(sequence) == nil, !soundless.contains(sequence) else { return }
        statistics.packetsRepaired &+= 1
        keep(entry, payload)
    }

    @_noAllocation @_noLocks
    private func entry(
        _ sequence: Int64, _ timestamp: Int64, _ payload: RawSpan, _ duration: Int, _ format: UInt8, _ arrival: Instant
    ) -> PacketStore.Entry {
        var entry = PacketStore.Entry()
        entry.sequence = sequence
        entry.timestamp = timestamp
        entry.arrivalNanoseconds = arrival.nanoseconds
        entry.samples = Int32(truncatingIfNeeded: duration)
        entry.format = format
        entry.isDiscontinuous = isDiscontinuous(payload, of: format)
        entry.restorableSamples = Int32(truncatingIfNeeded: restorableSamples(payload, of: format))
        return entry
    }

    /// Takes note of a packet of the stream that holds no sound, such as a telephone event: it is not waited for, and
    /// the sender is silent in its place.
    @_noAllocation @_noLocks
    public mutating func passOver(sequenceNumber: UInt16, ssrc: UInt32) {
        passOver(sequenceNumber, ssrc, isPadding: false)
    }

    /// - Parameter isPadding: There is nothing in it, as in those that probe a path (RFC 3550 §5.1): the sound goes on.
    @_noAllocation @_noLocks
    private mutating func passOver(_ sequenceNumber: UInt16, _ ssrc: UInt32, isPadding: Bool) {
        guard hasStream, self.ssrc == ssrc, receivedNanoseconds > 0,
            let sequence = clock.peek(sequence: sequenceNumber), abs(sequence &- endSequence) <= Self.sequenceJump
        else { return }
        if isPlaying, sequence < nextSequence {
            statistics.packetsLost = max(statistics.packetsLost &- 1, 0)
            return
        }
        soundless.insert(sequence)
        if isPadding { padding.insert(sequence) }
        endSequence = max(endSequence, sequence &+ 1)
    }

    @_noAllocation @_noLocks
    private mutating func take(_ entry: PacketStore.Entry, _ payload: RawSpan) {
        guard store.entry(entry.sequence) == nil else {
            statistics.packetsDuplicate &+= 1
            return
        }
        learn(from: entry)
        if entry.sequence < endSequence, receivedNanoseconds > 0 { statistics.packetsReordered &+= 1 }

        if isPlaying, entry.sequence < nextSequence {
            statistics.packetsLate &+= 1
            statistics.packetsLost = max(statistics.packetsLost &- 1, 0)
            return
        }
        if !isPlaying, store.count == 0 || entry.sequence < nextSequence {
            nextSequence = entry.sequence
            nextTimestamp = entry.timestamp
        }
        keep(entry, payload)
    }

    @_noAllocation @_noLocks
    private mutating func keep(_ entry: PacketStore.Entry, _ payload: RawSpan) {
        if store.insert(entry, payload: payload) { statistics.packetsDiscarded &+= 1 }
        if !entry.isNoise { packetSamples = Int(entry.samples) }
        endSequence = max(endSequence, entry.sequence &+ 1)
        endTimestamp = max(endTimestamp, entry.timestamp &+ Int64(entry.samples))
        receivedNanoseconds &+= Self.nanoseconds(samples: Int64(entry.samples))
    }

    /// Notes when the packet came, and what waiting for it would be worth to a lost one before it.
    @_noAllocation @_noLocks
    private mutating func learn(from entry: PacketStore.Entry) {
        if entry.sequence < endSequence, asked.contains(entry.sequence) { return }
        let mediaTime = Self.nanoseconds(samples: entry.timestamp)
        let transit = entry.arrivalNanoseconds &- mediaTime
        let duration = Self.nanoseconds(samples: Int64(entry.samples))
        let isOvertaken = receivedNanoseconds > 0 && entry.sequence < endSequence
        history.record(
            transit: transit, at: entry.arrivalNanoseconds, duration: duration, isOvertaken: isOvertaken)
        let followsGap = receivedNanoseconds > 0 && entry.sequence > endSequence
        if followsGap { learnRepairs(before: entry, delay: transit &- history.baseline, duration) }
        if followsGap, entry.restorableSamples > 0 {
            let wait = Self.nanoseconds(samples: Int64(entry.restorableSamples))
            history.recordRestorable(delay: transit &- history.baseline &+ wait, share: Self.recoveryWorth)
        }
    }

    /// Notes what waiting for the packets that a gap lacks would be worth, if they are asked for when it shows.
    @_noAllocation @_noLocks
    private mutating func learnRepairs(before entry: PacketStore.Entry, delay: Int64, _ duration: Int64) {
        guard let repair = repairNanoseconds, !entry.isDiscontinuous else { return }
        let missing = min(entry.sequence &- endSequence, Self.mostRepaired)
        for age in 1...missing where !soundless.contains(entry.sequence &- age) {
            // Forward error correction has most of the last one's worth already.
            let share = age == 1 && entry.restorableSamples > 0 ? 1 - Self.recoveryWorth : 1
            history.recordRestorable(delay: delay &+ age &* duration &+ repair, share: share)
        }
    }

    /// Packets of one gap that are waited for; longer ones are outages.
    private static var mostRepaired: Int64 { @_noAllocation @_noLocks get { 8 } }

    /// Restored sound is worth this much of the packet itself.
    private static var recoveryWorth: Float {
        @_noAllocation @_noLocks get { 0.7 }
    }

    @_noAllocation @_noLocks
    private func isJump(_ extended: (sequence: Int64, timestamp: Int64), _ arrival: Instant) -> Bool {
        guard receivedNanoseconds > 0 else { return false }
        let transit = arrival.nanoseconds &- Self.nanoseconds(samples: extended.timestamp)
        let isFarInTime = abs(transit &- history.baseline) > Self.timestampJumpNanoseconds
        return isFarInTime || abs(extended.sequence &- endSequence) > Self.sequenceJump
    }

    /// Begins with another stream: keeps what was learnt of the path's jitter, and what is decoded already.
    @_noAllocation @_noLocks
    private mutating func startAfresh(with format: UInt8) {
        statistics.resets &+= 1
        statistics.packetsDiscarded &+= store.count
        store.removeAll()
        use(format)
        decoder.reset()
        clock = StreamClock(samplesPerTick: decoder.samplesPerTick)
        clockFormat = format
        formerClock = nil
        soundless = PacketNumbers()
        padding = PacketNumbers()
        asked = PacketNumbers()
        history.forgetBaseline()
        target.forgetChoice()
        endSequence = 0
        endTimestamp = 0
        receivedNanoseconds = 0
        isPlaying = false
        isDiscontinuous = false
        heldSamples = 0
        skippedSamples = 0
        canRestore = false
        concealedRun = 0
    }
}
