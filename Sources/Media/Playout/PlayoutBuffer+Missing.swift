public import Timekeeping

extension PlayoutBuffer {
    /// The next packet that has not come though a later one has, and whose place has not been played.
    ///
    /// A packet that was overtaken less than 2 ms ago is not missing yet.
    /// - Parameters:
    ///   - number: The first that is asked about; `.min` for all.
    ///   - nextPull: When the next pull takes place.
    ///   - frameSamples: How much each pull takes.
    @_noAllocation @_noLocks
    public mutating func nextMissing(
        from number: Int64, nextPull: Instant, frameSamples: Int, at now: Instant
    ) -> MissingPacket? {
        guard isPlaying, frameSamples > 0,
            let (sequence, after) = losses.nextMissing(
                from: number, in: queue, from: nextSequence, to: stream.endSequence, at: now)
        else { return nil }
        return missing(sequence, before: after, nextPull, frameSamples)
    }

    /// When a packet that has just been overtaken counts as missing; nil if there is none. As of the last time that all
    /// missing packets were asked about.
    public var nextMissingAt: Instant? {
        @_noAllocation @_noLocks mutating get { losses.nextMissingAt }
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
    public mutating func noteRequest(for packet: MissingPacket) { delay.noteRequest(for: packet.number) }
}
