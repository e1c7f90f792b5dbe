internal import AudioKit

/// The sound of a stream from the decoder on, until it is handed out: decoded, restored or made up, and stretched.
struct DecodedSound: ~Copyable {
    private var samples = SyncBuffer()
    private var stretching = StretchControl()
    /// Concealment played in place of packets that may still come.
    private var heldSamples = 0
    /// Concealment since the last packet played.
    private var concealedRun = 0

    /// Samples that wait.
    var count: Int {
        @_noAllocation @_noLocks get { samples.count }
    }

    /// Samples handed out since the delay was last on target.
    var samplesOffTarget: Int {
        @_noAllocation @_noLocks get { stretching.samplesOffTarget }
    }

    /// Begins with another stream: keeps what is decoded already.
    @_noAllocation @_noLocks
    mutating func startAfresh() {
        heldSamples = 0
        concealedRun = 0
    }

    // MARK: Sources

    /// Decodes a packet; all but the first `dropped` samples wait.
    @_noAllocation @_noLocks
    mutating func decode(
        _ entry: PacketStore.Entry, in queue: borrowing PacketQueue, with decoders: inout FormatDecoders,
        dropping dropped: Int
    ) {
        decoders.prepare(for: entry.format)
        let decoded = samples.decode(entry, in: queue, with: &decoders, dropping: dropped)
        if decoded <= 0 {
            _ = samples.conceal(Self.wholeSteps(Int(entry.samples)), with: &decoders, dropping: dropped)
        }
        heldSamples = 0
        concealedRun = 0
    }

    /// Restores `count` samples lost before a packet from that; all but the first `dropped` samples wait.
    @_noAllocation @_noLocks
    mutating func recover(
        _ count: Int, from entry: PacketStore.Entry, in queue: borrowing PacketQueue,
        with decoders: inout FormatDecoders, dropping dropped: Int
    ) {
        decoders.prepare(for: entry.format)
        let restored = samples.restore(count, from: entry, in: queue, with: &decoders, dropping: dropped)
        if restored <= 0 { _ = samples.conceal(Self.wholeSteps(count), with: &decoders, dropping: dropped) }
    }

    /// Makes up `count` samples that are lost for good; all but the first `dropped` samples wait.
    ///
    /// - Returns: How many samples of the stream that covers.
    @_noAllocation @_noLocks
    mutating func coverLoss(_ count: Int, with decoders: inout FormatDecoders, dropping dropped: Int) -> Int {
        decoders.restore()
        let whole = Self.wholeSteps(count)
        _ = samples.conceal(whole, with: &decoders, dropping: dropped)
        return whole
    }

    /// Makes up `count` samples while waiting for a packet.
    @_noAllocation @_noLocks
    mutating func hold(_ count: Int, with decoders: inout FormatDecoders, _ frame: inout PulledFrame) {
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
        makeUp(count, with: &decoders)
        samples.scaleLast(count, from: gain, to: Self.concealmentGain(concealedRun))
        frame.concealedSamples &+= count
    }

    /// How loud concealment is after `run` samples of it: full for 200 ms, then fading out over 400 ms.
    @_noAllocation @_noLocks
    private static func concealmentGain(_ run: Int) -> Float {
        min(max(1 - Float(run &- 9_600) / 19_200, 0), 1)
    }

    /// `count` samples of held concealment replace what is skipped.
    @_noAllocation @_noLocks
    mutating func release(_ count: Int) { heldSamples = max(heldSamples &- count, 0) }

    /// Lets `count` made-up samples wait, and keeps more ready to fade into what comes.
    @_noAllocation @_noLocks
    mutating func makeUp(_ count: Int, with decoders: inout FormatDecoders) {
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

    /// `count` rounded up to what libopus can conceal: whole 2.5 ms, at most 120 ms.
    @_noAllocation @_noLocks
    private static func wholeSteps(_ count: Int) -> Int {
        min((count &+ 119) / 120 &* 120, OpusPacket.maximumSamples)
    }

    // MARK: Pulls

    @_noAllocation @_noLocks
    mutating func beginPull() { stretching.beginPull() }

    /// Completes a status that says how far the delay is off its target.
    @_noAllocation @_noLocks
    mutating func describe(_ status: inout PlayoutStatus) {
        status.waitingSamples = samples.count
        status.heldSamples = heldSamples
        stretching.describe(samples, &status)
    }

    /// Removes at most `most` samples by time-stretching.
    @_noAllocation @_noLocks
    mutating func accelerate(atMost most: Int, _ frame: inout PulledFrame) {
        frame.stretchedSamples &-= stretching.accelerate(&samples, atMost: most)
    }

    /// Inserts at least `shortest` samples by time-stretching, or none.
    @_noAllocation @_noLocks
    mutating func decelerate(atLeast shortest: Int, _ frame: inout PulledFrame) {
        frame.stretchedSamples &+= stretching.decelerate(&samples, atLeast: shortest)
    }

    /// Hands out the first `wanted` samples, with silence in place of what is not there, and zeros behind them.
    @_noAllocation @_noLocks
    mutating func handOut(_ output: inout MutableSpan<Int16>, _ wanted: Int, _ frame: inout PulledFrame) {
        if samples.count < wanted {
            frame.silentSamples &+= wanted &- samples.count
            samples.appendSilence(wanted &- samples.count)
        }
        var front = output._mutatingExtracting(first: wanted)
        samples.take(into: &front)
        var index = wanted
        while index < output.count {
            output[index] = 0
            index &+= 1
        }
        stretching.endPull(wanted)
    }
}
