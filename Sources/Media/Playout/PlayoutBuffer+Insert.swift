public import Timekeeping

extension PlayoutBuffer {
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
        let format = format ?? decoders.newestFormat
        insert(
            payload, decoders.samples(in: payload, of: format), isNoise: false, format, sequenceNumber, timestamp, ssrc,
            arrival)
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
            payload, Self.noiseSamples, isNoise: true, format ?? decoders.newestFormat, sequenceNumber, timestamp, ssrc,
            arrival)
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
        if stream.identify(by: ssrc) { startAfresh(with: format) }
        var place = extend(sequenceNumber, timestamp, of: format, arrival)
        if let found = place, stream.isJump(found, arrival, baseline: delay.baseline) {
            startAfresh(with: format)
            place = stream.extend(sequenceNumber, timestamp, of: format)
        }
        guard let place else {
            statistics.packetsDiscarded &+= 1
            return
        }

        var entry = entry(place.sequence, place.timestamp, payload, duration, format, arrival)
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
        entry.isDiscontinuous = decoders.isDiscontinuous(payload, of: format)
        entry.restorableSamples = Int32(truncatingIfNeeded: decoders.restorableSamples(payload, of: format))
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
        guard let sequence = stream.number(of: sequenceNumber, ssrc: ssrc) else { return }
        if isPlaying, sequence < nextSequence {
            statistics.packetsLost = max(statistics.packetsLost &- 1, 0)
            return
        }
        queue.insertSoundless(sequence, isPadding: isPadding)
        stream.noteSoundless(sequence)
    }

    @_noAllocation @_noLocks
    private mutating func take(_ entry: PacketStore.Entry, _ payload: RawSpan) {
        guard !queue.contains(entry.sequence) else {
            statistics.packetsDuplicate &+= 1
            return
        }
        let missing = stream.gap(before: entry.sequence)
        delay.learn(from: entry, missing: missing, queue, repairNanoseconds: repairNanoseconds)
        if missing < 0 { statistics.packetsReordered &+= 1 }
        stream.noteArrival(of: entry)

        if isPlaying, entry.sequence < nextSequence {
            statistics.packetsLate &+= 1
            statistics.packetsLost = max(statistics.packetsLost &- 1, 0)
            return
        }
        if !isPlaying, queue.count == 0 || entry.sequence < nextSequence {
            nextSequence = entry.sequence
            nextTimestamp = entry.timestamp
        }
        keep(entry, payload)
    }

    @_noAllocation @_noLocks
    mutating func keep(_ entry: PacketStore.Entry, _ payload: RawSpan) {
        if queue.insert(entry, payload: payload) { statistics.packetsDiscarded &+= 1 }
        stream.noteSound(of: entry)
    }

    /// Begins with another stream: keeps what was learnt of the path's jitter, and what is decoded already.
    @_noAllocation @_noLocks
    private mutating func startAfresh(with format: UInt8) {
        statistics.resets &+= 1
        statistics.packetsDiscarded &+= queue.count
        queue.removeAll()
        decoders.reset(to: format)
        stream.startAfresh(in: format, samplesPerTick: decoders.samplesPerTick)
        delay.startAfresh()
        isPlaying = false
        isDiscontinuous = false
        heldSamples = 0
        skippedSamples = 0
        concealedRun = 0
    }
}
