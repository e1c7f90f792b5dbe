public import Timekeeping

extension PlayoutBuffer {
    /// A media time that is off by more than this belongs to another stream.
    private static var timestampJumpNanoseconds: Int64 { @_noAllocation @_noLocks get { 3_000_000_000 } }
    /// A sequence number that is off by more than this does too.
    static var sequenceJump: Int64 { @_noAllocation @_noLocks get { 1_500 } }

    /// Takes one packet, copying its payload. Nothing a peer sends can trap.
    ///
    /// - Parameters:
    ///   - payload: One Opus packet, without RTP header and padding.
    ///   - sequenceNumber: From the RTP header.
    ///   - timestamp: From the RTP header, at 48 kHz (RFC 7587 §4.1).
    ///   - marker: From the RTP header; set in the first packet after silence. Only a hint.
    ///   - ssrc: From the RTP header; another one starts the buffer afresh.
    ///   - format: The packet's format, by the number that ``change(to:)`` returned; nil: the newest.
    ///   - arrival: When the packet arrived, as exactly as known: the kernel's timestamp if there is one.
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

    @_noAllocation @_noLocks
    func entry(
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

    /// Records a packet of the stream without sound, such as a telephone event: the buffer does not wait for it, and
    /// the sender is silent at that time.
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
        endOfArrivals = max(endOfArrivals, sequence &+ 1)
    }

    @_noAllocation @_noLocks
    private mutating func take(_ entry: PacketStore.Entry, _ payload: RawSpan) {
        guard store.entry(entry.sequence) == nil else {
            statistics.packetsDuplicate &+= 1
            return
        }
        learn(from: entry)
        if entry.sequence < endOfArrivals, receivedNanoseconds > 0 { statistics.packetsReordered &+= 1 }
        if entry.sequence >= endOfArrivals {
            endOfArrivals = entry.sequence &+ 1
            endOfArrivalsTimestamp = entry.timestamp &+ Int64(entry.samples)
        }

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
    mutating func keep(_ entry: PacketStore.Entry, _ payload: RawSpan) {
        if store.insert(entry, payload: payload) { statistics.packetsDiscarded &+= 1 }
        if !entry.isNoise { packetSamples = Int(entry.samples) }
        endSequence = max(endSequence, entry.sequence &+ 1)
        endTimestamp = max(endTimestamp, entry.timestamp &+ Int64(entry.samples))
        receivedNanoseconds &+= Self.nanoseconds(samples: Int64(entry.samples))
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
        freshGap = nil
        carried = CarriedCopies()
        endSequence = 0
        endOfArrivals = 0
        endOfArrivalsTimestamp = 0
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
