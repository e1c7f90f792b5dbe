internal import Timekeeping

// Streams that change their codec while they are played: descriptions have agreed on another (RFC 3264 §8.3.2).
extension PlayoutBuffer {
    /// Switches the stream to another format, which `decoder` decodes. Waiting packets, and late packets of the old
    /// format, are decoded as before; the change takes effect at the first packet of the new format.
    ///
    /// A decoder that is no longer needed replaces `decoder`, to be freed elsewhere. An empty one changes nothing.
    /// - Returns: The format's number, which its packets are inserted with.
    @_noAllocation @_noLocks
    public mutating func change(to decoder: inout StreamDecoder) -> UInt8 {
        guard !decoder.isEmpty else { return newestFormat }
        exchange(&otherDecoder, &decoder)
        newestFormat &+= 1
        otherFormat = newestFormat
        return newestFormat
    }

    /// The number of the newest format, which packets are of that are inserted without one.
    public var newestFormatNumber: UInt8 { @_noAllocation @_noLocks get { newestFormat } }

    /// Decodes with the decoder of a format from now on.
    @_noAllocation @_noLocks
    mutating func use(_ wanted: UInt8) {
        guard wanted != format, wanted == otherFormat, !otherDecoder.isEmpty else { return }
        exchange(&decoder, &otherDecoder)
        (format, otherFormat) = (otherFormat, format)
        // The saved state belongs to the other decoder.
        canRestore = false
    }

    /// A packet's position in the stream; nil if its format is no longer known.
    @_noAllocation @_noLocks
    mutating func extend(
        _ sequenceNumber: UInt16, _ timestamp: UInt32, of format: UInt8, _ arrival: Instant
    ) -> (sequence: Int64, timestamp: Int64)? {
        if format == clockFormat { return clock.extend(sequence: sequenceNumber, timestamp: timestamp) }
        guard format == newestFormat else {
            guard format == clockFormat &- 1, var former = formerClock else { return nil }
            let extended = former.extend(sequence: sequenceNumber, timestamp: timestamp)
            formerClock = former
            return extended
        }
        let ticks = samplesPerTick(of: format)
        if let sequence = clock.peek(sequence: sequenceNumber), receivedNanoseconds > 0 {
            formerClock = clock
            clock = StreamClock(
                samplesPerTick: ticks, sequence: sequence, sequenceNumber: sequenceNumber,
                time: predictedTime(of: sequence, arrival), timestamp: timestamp)
        } else {
            use(format)
            clock = StreamClock(samplesPerTick: ticks)
        }
        clockFormat = format
        return clock.extend(sequence: sequenceNumber, timestamp: timestamp)
    }

    /// The media time of the first packet whose timestamp says nothing of the packets before: as far behind them as its
    /// number is, unless it came so much later that the sender must have been silent.
    @_noAllocation @_noLocks
    private func predictedTime(of sequence: Int64, _ arrival: Instant) -> Int64 {
        let byNumber = endTimestamp &+ (sequence &- endSequence) &* Int64(packetSamples)
        let byArrival = Int64(Self.samples(nanoseconds: arrival.nanoseconds &- history.baseline))
        return byArrival &- byNumber > Self.pauseSamples ? byArrival : byNumber
    }

    /// 400 ms: more than ordinary networks hold packets back.
    private static var pauseSamples: Int64 { @_noAllocation @_noLocks get { 19_200 } }

    @_noAllocation @_noLocks
    private func samplesPerTick(of wanted: UInt8) -> Int64 {
        wanted == format ? decoder.samplesPerTick : otherDecoder.samplesPerTick
    }

    /// Samples that a payload decodes to; 0 if it cannot be decoded.
    @_noAllocation @_noLocks
    func samples(in payload: RawSpan, of wanted: UInt8) -> Int {
        if wanted == format { return decoder.samples(in: payload) }
        return wanted == otherFormat ? otherDecoder.samples(in: payload) : 0
    }

    @_noAllocation @_noLocks
    func isDiscontinuous(_ payload: RawSpan, of wanted: UInt8) -> Bool {
        if wanted == format { return decoder.isDiscontinuous(payload) }
        return otherDecoder.isDiscontinuous(payload)
    }

    @_noAllocation @_noLocks
    func restorableSamples(_ payload: RawSpan, of wanted: UInt8) -> Int {
        if wanted == format { return decoder.restorableSamples(payload) }
        return otherDecoder.restorableSamples(payload)
    }
}

// Swaps in place, so that no decoder is freed here.
@_semantics("no_performance_analysis") @inline(__always)
private func exchange(_ one: inout StreamDecoder, _ other: inout StreamDecoder) { swap(&one, &other) }
