public import Timekeeping

/// A packet that later ones have overtaken.
public struct MissingPacket: Equatable, Sendable, BitwiseCopyable {
    /// Counts without wrapping, from the stream's first packet.
    public var number: Int64
    /// The number in its header.
    public var sequenceNumber: UInt16
    /// The pull that needs it.
    public var dueAt: Instant
}

extension PlayoutBuffer {
    /// Packets before the newest that are looked at.
    private static var mostMissing: Int64 { @_noAllocation @_noLocks get { 64 } }

    /// The next packet that has not come though a later one has, and whose place has not been played.
    ///
    /// - Parameters:
    ///   - number: The first that is asked about; `.min` for all.
    ///   - nextPull: When the next pull takes place.
    ///   - frameSamples: How much each pull takes.
    @_noAllocation @_noLocks
    public func nextMissing(from number: Int64, nextPull: Instant, frameSamples: Int) -> MissingPacket? {
        guard isPlaying, frameSamples > 0 else { return nil }
        var candidate = max(number, max(nextSequence, endSequence &- Self.mostMissing))
        while candidate < endSequence {
            if !soundless.contains(candidate), !store.contains(candidate) {
                guard let after = store.first(from: candidate) else { return nil }
                let mediaTime = after.timestamp &- (after.sequence &- candidate) &* Int64(packetSamples)
                let played = nextTimestamp &+ Int64(skippedSamples &- samples.count)
                let pulls = max(mediaTime &- played, 0) / Int64(frameSamples)
                let wait = Self.nanoseconds(samples: pulls &* Int64(frameSamples))
                return MissingPacket(
                    number: candidate, sequenceNumber: clock.wire(candidate),
                    dueAt: Instant(nanoseconds: nextPull.nanoseconds &+ wait))
            }
            candidate &+= 1
        }
        return nil
    }

    /// A packet was asked for again: it comes late for reasons of its own.
    @_noAllocation @_noLocks
    public mutating func noteRequest(for packet: MissingPacket) { asked.insert(packet.number) }
}
