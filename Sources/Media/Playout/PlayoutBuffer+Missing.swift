public import Timekeeping

/// A packet that later ones have overtaken.
public struct MissingPacket: Equatable, Sendable, BitwiseCopyable {
    /// Counts without wrapping, from the stream's first packet.
    public var number: Int64
    /// The number in its header.
    public var sequenceNumber: UInt16
    /// The pull that needs it.
    public var dueAt: Instant

    /// Names a packet.
    @_noAllocation @_noLocks
    public init(number: Int64, sequenceNumber: UInt16, dueAt: Instant) {
        self.number = number
        self.sequenceNumber = sequenceNumber
        self.dueAt = dueAt
    }
}

extension PlayoutBuffer {
    /// Packets before the newest that are looked at.
    private static var mostMissing: Int64 { @_noAllocation @_noLocks get { 64 } }

    /// The next packet that has not come though a later one has, and whose place has not been played.
    ///
    /// A packet that was overtaken less than ``overtakingNanoseconds`` ago is not missing yet.
    /// - Parameters:
    ///   - number: The first that is asked about; `.min` for all.
    ///   - nextPull: When the next pull takes place.
    ///   - frameSamples: How much each pull takes.
    @_noAllocation @_noLocks
    public mutating func nextMissing(
        from number: Int64, nextPull: Instant, frameSamples: Int, at now: Instant
    ) -> MissingPacket? {
        guard isPlaying, frameSamples > 0 else { return nil }
        if number == .min { missingSince = nil }
        var candidate = max(number, max(nextSequence, stream.endSequence &- Self.mostMissing))
        while candidate < stream.endSequence {
            if !soundless.contains(candidate), !store.contains(candidate) {
                guard let after = store.first(from: candidate) else { return nil }
                if now.nanoseconds &- after.arrivalNanoseconds >= Self.overtakingNanoseconds {
                    return missing(candidate, before: after, nextPull, frameSamples)
                }
                missingSince = after.arrivalNanoseconds
            }
            candidate &+= 1
        }
        return nil
    }

    /// When a packet that has just been overtaken counts as missing; nil if there is none. As of the last time that all
    /// missing packets were asked about.
    public var nextMissingAt: Instant? {
        @_noAllocation @_noLocks mutating get {
            missingSince.map { Instant(nanoseconds: $0 &+ Self.overtakingNanoseconds) }
        }
    }

    @_noAllocation @_noLocks
    private mutating func missing(
        _ sequence: Int64, before after: PacketStore.Entry, _ nextPull: Instant, _ frameSamples: Int
    ) -> MissingPacket {
        let mediaTime = after.timestamp &- (after.sequence &- sequence) &* Int64(stream.packetSamples)
        let played = nextTimestamp &+ Int64(skippedSamples &- samples.count)
        let pulls = max(mediaTime &- played, 0) / Int64(frameSamples)
        let wait = StreamClock.nanoseconds(samples: pulls &* Int64(frameSamples))
        return MissingPacket(
            number: sequence, sequenceNumber: stream.sequenceNumber(of: sequence),
            dueAt: Instant(nanoseconds: nextPull.nanoseconds &+ wait))
    }

    /// A packet was asked for again: it comes late for reasons of its own.
    @_noAllocation @_noLocks
    public mutating func noteRequest(for packet: MissingPacket) { asked.insert(packet.number) }
}
