/// Counters and delays of one ``PlayoutBuffer`` since it was made. Samples are at 48 kHz.
public struct PlayoutStatistics: BitwiseCopyable, Sendable {
    /// All packets given to `insert`.
    public var packetsReceived = 0
    /// Packets that were there already.
    public var packetsDuplicate = 0
    /// Packets that arrived after their position had been played.
    public var packetsLate = 0
    /// Packets that came after one sent later.
    public var packetsReordered = 0
    /// Packets that were needed and never came. One that comes late after all counts as late instead.
    public var packetsLost = 0
    /// Packets that did not come, and were played from the copy in a later one (RFC 2198).
    public var packetsRepaired = 0
    /// Packets dropped because the buffer was full, or waited beyond the maximum delay, or cannot be Opus.
    public var packetsDiscarded = 0
    /// Times the buffer started afresh: another SSRC, or a timestamp that cannot belong to the stream.
    public var resets = 0

    /// All samples handed out.
    public var samplesPlayed = 0
    /// Concealed samples, because a packet was lost or late.
    public var samplesConcealed = 0
    /// Samples restored from the forward error correction of the next packet.
    public var samplesRecovered = 0
    /// Silence and comfort noise: before the first packet, while the sender is silent, in a long outage.
    public var samplesSilent = 0
    /// Samples that speeding up took out.
    public var samplesAccelerated = 0
    /// Samples that slowing down put in.
    public var samplesDecelerated = 0

    /// Delay aimed at, above the fastest recent path.
    public var targetDelayNanoseconds: Int64 = 0
    /// Delay now, above the fastest recent path.
    public var playoutDelayNanoseconds: Int64 = 0
    /// From arrival to the first sample played, added up over all packets played.
    public var bufferDelaySumNanoseconds: Int64 = 0
    /// Packets in that sum.
    public var bufferDelayCount = 0
    /// The same delays by size: bin `i` counts those from 5·i ms to below 5·(i+1) ms; the last all above.
    public var bufferDelayHistogram = InlineArray<128, UInt32>(repeating: 0)

    /// Nothing seen yet.
    public init() {}

    /// Mean time from a packet's arrival to its first sample played; 0 before the first.
    public var meanBufferDelayNanoseconds: Int64 {
        bufferDelayCount == 0 ? 0 : bufferDelaySumNanoseconds / Int64(bufferDelayCount)
    }

    /// The delay that `share` (0…1) of packets stayed below, to 5 ms; 0 before the first.
    public func bufferDelayNanoseconds(quantile share: Double) -> Int64 {
        let wanted = Double(bufferDelayCount) * share
        var seen = 0.0
        for bin in bufferDelayHistogram.indices where bufferDelayCount > 0 {
            seen += Double(bufferDelayHistogram[bin])
            if seen >= wanted { return Int64(bin + 1) * 5_000_000 }
        }
        return 0
    }

    @_noAllocation @_noLocks
    mutating func recordBufferDelay(nanoseconds: Int64) {
        bufferDelaySumNanoseconds &+= nanoseconds
        bufferDelayCount &+= 1
        bufferDelayHistogram[Int(min(max(nanoseconds / 5_000_000, 0), 127))] &+= 1
    }

    /// Counts what a pull of `samples` samples handed out.
    @_noAllocation @_noLocks
    mutating func record(_ frame: PulledFrame, samples: Int) {
        samplesPlayed &+= samples
        samplesConcealed &+= frame.concealedSamples
        samplesRecovered &+= frame.recoveredSamples
        samplesSilent &+= frame.silentSamples
        if frame.stretchedSamples < 0 { samplesAccelerated &-= frame.stretchedSamples }
        if frame.stretchedSamples > 0 { samplesDecelerated &+= frame.stretchedSamples }
    }

    /// A packet that counted as lost came after all.
    @_noAllocation @_noLocks
    mutating func recordNotLost() { packetsLost = max(packetsLost &- 1, 0) }
}

/// What one pull handed out, in samples; samples in none of the counts were played unchanged.
public struct PulledFrame: Equatable, Sendable {
    /// Concealed for this pull.
    public var concealedSamples = 0
    /// Restored from forward error correction for this pull.
    public var recoveredSamples = 0
    /// Silence or comfort noise for this pull.
    public var silentSamples = 0
    /// Put in (positive) or taken out (negative) by time-stretching.
    public var stretchedSamples = 0
    /// Nothing done yet.
    @_noAllocation @_noLocks
    public init() {}

    /// Whether any of `samples` samples that were handed out came from a packet of the peer: the others are made up.
    @_noAllocation @_noLocks
    public func hasReceivedSound(among samples: Int) -> Bool { concealedSamples &+ silentSamples < samples }
}
