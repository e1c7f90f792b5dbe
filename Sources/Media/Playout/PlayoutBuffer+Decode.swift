internal import OpusCodec
internal import Timekeeping

/// The sources of sound: packets, their forward error correction, and concealment.
extension PlayoutBuffer {
    /// Decodes the next packet. What `skip` asked for is decoded too, for the decoder's sake, but not played.
    @_noAllocation @_noLocks
    mutating func play(_ now: Instant) {
        guard let entry = queue.first(from: nextSequence) else { return }
        decoders.restore()
        decoders.use(entry.format)
        noteLost(before: entry.sequence)
        let duration = Int(entry.samples)
        // A packet that begins before what is already covered counts from there.
        let overlapped = Int(min(max(nextTimestamp &- entry.timestamp, 0), Int64(duration)))
        let dropped = min(skippedSamples &+ overlapped, duration)
        skippedSamples &-= dropped &- min(overlapped, dropped)
        if dropped < duration {
            statistics.playoutDelayNanoseconds = playoutTransit(now) &- delay.baseline
            let due = now.nanoseconds &+ StreamClock.nanoseconds(samples: Int64(samples.count))
            statistics.recordBufferDelay(nanoseconds: due &- entry.arrivalNanoseconds)
        } else {
            statistics.packetsLate &+= 1
        }
        let decoded = samples.decode(entry, in: queue, with: &decoders, dropping: dropped)
        if decoded <= 0 { _ = samples.conceal(Self.wholeSteps(duration), with: &decoders, dropping: dropped) }
        queue.remove(entry.sequence)
        nextSequence = entry.sequence &+ 1
        nextTimestamp = max(nextTimestamp, entry.timestamp &+ Int64(duration))
        isDiscontinuous = entry.isDiscontinuous
        heldSamples = 0
        concealedRun = 0
    }

    /// Throws the next packet away: it has waited beyond the maximum delay.
    @_noAllocation @_noLocks
    mutating func discardNext() {
        guard let entry = queue.first(from: nextSequence) else { return }
        queue.remove(entry.sequence)
        statistics.packetsDiscarded &+= 1
        nextSequence = entry.sequence &+ 1
        nextTimestamp = entry.timestamp &+ Int64(entry.samples)
    }

    /// Restores `count` lost samples before the next packet from that packet.
    @_noAllocation @_noLocks
    mutating func recover(_ count: Int, _ frame: inout PulledFrame) {
        guard let entry = queue.first(from: nextSequence) else { return }
        decoders.restore()
        decoders.use(entry.format)
        let dropped = drop(atMost: count)
        let restored = samples.restore(count, from: entry, in: queue, with: &decoders, dropping: dropped)
        if restored <= 0 { _ = samples.conceal(Self.wholeSteps(count), with: &decoders, dropping: dropped) }
        nextTimestamp &+= Int64(count)
        noteLost(before: entry.sequence)
        nextSequence = entry.sequence
        frame.recoveredSamples &+= count &- dropped
    }

    /// Makes up `count` samples that are lost for good.
    @_noAllocation @_noLocks
    mutating func coverLoss(_ count: Int, _ frame: inout PulledFrame) {
        decoders.restore()
        let dropped = drop(atMost: count)
        _ = samples.conceal(Self.wholeSteps(count), with: &decoders, dropping: dropped)
        nextTimestamp &+= Int64(Self.wholeSteps(count))
        frame.concealedSamples &+= count &- dropped
    }

    /// Makes up `count` samples while waiting for a packet.
    @_noAllocation @_noLocks
    mutating func hold(_ count: Int, _ frame: inout PulledFrame) {
        if heldSamples == 0 { decoders.save() }
        heldSamples &+= count
        let gain = Self.concealmentGain(concealedRun)
        concealedRun &+= count
        guard gain > 0 else {
            samples.appendSilence(count)
            samples.makeSilenceProvisional()
            frame.silentSamples &+= count
            return
        }
        makeUp(count)
        samples.scaleLast(count, from: gain, to: Self.concealmentGain(concealedRun))
        frame.concealedSamples &+= count
    }

    /// How loud concealment is after `run` samples of it: full for 200 ms, then fading out over 400 ms.
    @_noAllocation @_noLocks
    private static func concealmentGain(_ run: Int) -> Float {
        min(max(1 - Float(run &- 9_600) / 19_200, 0), 1)
    }

    /// Lets `count` made-up samples wait, and keeps more ready to fade into what comes.
    @_noAllocation @_noLocks
    mutating func makeUp(_ count: Int) {
        let ready = min(samples.provisional, count)
        samples.settle(ready)
        let missing = count &- ready
        guard missing > 0 else { return }
        let step = PlayoutPolicy.concealmentStep
        let whole = min((missing &+ PlayoutPolicy.overlap &+ step &- 1) / step &* step, OpusPacket.maximumSamples)
        if samples.concealProvisionally(whole, with: &decoders) > 0 {
            samples.settle(missing)
        } else {
            samples.appendSilence(missing)
        }
    }

    /// How many of the next `count` samples were skipped.
    @_noAllocation @_noLocks
    private mutating func drop(atMost count: Int) -> Int {
        let dropped = min(skippedSamples, count)
        skippedSamples &-= dropped
        return dropped
    }

    @_noAllocation @_noLocks
    private mutating func noteLost(before sequence: Int64) {
        statistics.packetsLost &+= queue.missing(from: nextSequence, to: sequence)
    }

    /// Moves past packets that hold no sound: unless they are mere padding, the sender is silent in their place.
    @_noAllocation @_noLocks
    mutating func passSoundless() {
        while queue.isSoundless(nextSequence) {
            if !queue.isPadding(nextSequence) { isDiscontinuous = true }
            nextSequence &+= 1
        }
    }

    /// `count` rounded up to what libopus can conceal: whole 2.5 ms, at most 120 ms.
    @_noAllocation @_noLocks
    private static func wholeSteps(_ count: Int) -> Int {
        min((count &+ 119) / 120 &* 120, OpusPacket.maximumSamples)
    }
}
