public import Timekeeping

extension PlayoutBuffer {
    /// More steps than any frame can need: a bound against our own mistakes, after which the rest is silence.
    private static var stepLimit: Int { @_noAllocation @_noLocks get { 64 } }

    /// Fills `output` with the sound that is due at `now`: 10 to 60 ms, whatever the packets' own length.
    ///
    /// - Parameter now: When this frame begins to be played, on the clock of the packets' arrivals. It should advance
    ///   by the frame's duration from pull to pull, as a timer's deadlines do, not by when the thread woke.
    /// - Returns: What the frame is made of.
    @_noAllocation @_noLocks
    public mutating func pull(into output: inout MutableSpan<Int16>, at now: Instant) -> PulledFrame {
        var frame = PulledFrame()
        let wanted = min(output.count, 2_880)
        hasStretched = false
        hasListened = false
        delay.settleGap(at: now.nanoseconds, queue, repairNanoseconds: repairNanoseconds)
        startIfDue(now, wanted)
        if isPlaying {
            updateTarget(now, wanted)
            var steps = 0
            while steps < Self.stepLimit {
                passSoundless()
                let decision = PlayoutPolicy.decide(status(now, wanted))
                if case .handOut = decision { break }
                carryOut(decision, now, &frame)
                steps &+= 1
            }
        }
        if samples.count < wanted {
            frame.silentSamples &+= wanted &- samples.count
            samples.appendSilence(wanted &- samples.count)
        }
        handOut(&output, wanted, &frame)
        return frame
    }

    @_noAllocation @_noLocks
    private mutating func handOut(_ output: inout MutableSpan<Int16>, _ wanted: Int, _ frame: inout PulledFrame) {
        var front = output._mutatingExtracting(first: wanted)
        samples.take(into: &front)
        var index = wanted
        while index < output.count {
            output[index] = 0
            index &+= 1
        }
        samplesSinceStretch &+= wanted
        samplesOffTarget &+= wanted
        statistics.samplesPlayed &+= output.count
        statistics.samplesConcealed &+= frame.concealedSamples
        statistics.samplesRecovered &+= frame.recoveredSamples
        statistics.samplesSilent &+= frame.silentSamples
        if frame.stretchedSamples < 0 { statistics.samplesAccelerated &-= frame.stretchedSamples }
        if frame.stretchedSamples > 0 { statistics.samplesDecelerated &+= frame.stretchedSamples }
    }

    /// By how much earlier pulls of so many samples should take place, so that packets wait the least without coming late:
    /// in nanoseconds, from 0 to below a pull's length. 0 until enough is known.
    @_noAllocation @_noLocks
    public func worthwhileAdvance(pullSamples: Int, at now: Instant) -> Int64 {
        // Only on target does the delay tell where the grid stands.
        guard isPlaying, samplesOffTarget < 48_000, stream.receivedNanoseconds > 2_500_000_000 else { return 0 }
        return delay.worthwhileAdvance(grid(now, pullSamples))
    }

    /// Takes note that pulls come earlier by so much from now on, as ``worthwhileAdvance(pullSamples:at:)`` asked for, or
    /// later if it is negative.
    @_noAllocation @_noLocks
    public mutating func advancePulls(nanoseconds: Int64) { delay.advancePulls(nanoseconds: nanoseconds) }

    /// Whether all the sound that a pull of so many samples takes is here.
    @_noAllocation @_noLocks
    public func hasSound(forPull pullSamples: Int) -> Bool { soundAhead(pullSamples).samples >= pullSamples }

    /// Whether a pull of so many samples would have to make up sound, though what is missing may only be late: nothing
    /// tells of a loss or of the sender's silence.
    @_noAllocation @_noLocks
    public func mayAwait(forPull pullSamples: Int) -> Bool {
        guard isPlaying, !isDiscontinuous else { return false }
        let ahead = soundAhead(pullSamples)
        return ahead.samples < pullSamples && ahead.next >= stream.endSequence && !ahead.isDiscontinuous
    }

    /// How much later than the fastest a packet may come for a pull of so many samples at `now`, in nanoseconds.
    @_noAllocation @_noLocks
    public func room(forPull pullSamples: Int, at now: Instant) -> Int64 {
        playoutTransit(now) &- delay.baseline &- grid(now, pullSamples).lead
    }

    @_noAllocation @_noLocks
    private func soundAhead(_ pullSamples: Int) -> (samples: Int, next: Int64, isDiscontinuous: Bool) {
        queue.soundAhead(from: nextSequence, decoded: samples.count, wanted: pullSamples)
    }

    /// Starts the stream when its first packet has waited as long as the target says.
    @_noAllocation @_noLocks
    private mutating func startIfDue(_ now: Instant, _ wanted: Int) {
        guard !isPlaying, queue.count > 0 else { return }
        updateTarget(now, wanted)
        if playoutTransit(now) >= delay.targetTransit &- StreamClock.nanoseconds(samples: 120) { isPlaying = true }
    }

    /// How long after its media time the next sample to be handed out is played.
    @_noAllocation @_noLocks
    func playoutTransit(_ now: Instant) -> Int64 {
        now.nanoseconds &- StreamClock.nanoseconds(samples: nextTimestamp &+ Int64(skippedSamples &- samples.count))
    }

    @_noAllocation @_noLocks
    private mutating func updateTarget(_ now: Instant, _ wanted: Int) {
        delay.update(grid(now, wanted), received: stream.receivedNanoseconds)
        statistics.targetDelayNanoseconds = delay.targetTransit &- delay.baseline
    }

    @_noAllocation @_noLocks
    private func grid(_ now: Instant, _ wanted: Int) -> TargetDelay.Grid {
        let step = Self.commonDivisor(wanted, stream.packetSamples)
        let origin = playoutTransit(now) &- StreamClock.nanoseconds(samples: Int64(samples.count % step))
        return TargetDelay.Grid(
            origin: origin, step: StreamClock.nanoseconds(samples: Int64(step)),
            lead: StreamClock.nanoseconds(samples: Int64(max(wanted &- stream.packetSamples, 0))),
            patience: pullPatienceNanoseconds)
    }

    @_noAllocation @_noLocks
    private static func commonDivisor(_ left: Int, _ right: Int) -> Int {
        var (a, b) = (max(left, 1), max(right, 1))
        while b != 0 { (a, b) = (b, a % b) }
        return a
    }

    @_noAllocation @_noLocks
    private mutating func status(_ now: Instant, _ wanted: Int) -> PlayoutStatus {
        var status = PlayoutStatus()
        status.frameSamples = wanted
        status.waitingSamples = samples.count
        status.heldSamples = heldSamples
        status.isDiscontinuous = isDiscontinuous
        status.samplesSinceStretch = samplesSinceStretch
        status.samplesOffTarget = samplesOffTarget
        status.hasStretched = hasStretched
        status.excessSamples = StreamClock.samples(nanoseconds: playoutTransit(now) &- delay.targetTransit)
        let beyond = playoutTransit(now) &- delay.longestTransit
        status.overflowSamples = max(StreamClock.samples(nanoseconds: beyond), 0)
        if abs(status.excessSamples) < PlayoutPolicy.shortestStretch { samplesOffTarget = 0 }
        if let entry = queue.first(from: nextSequence) { describe(entry, &status) }
        if samples.count >= wanted, !hasListened {
            hasListened = true
            loudness.listen(to: samples)
        }
        status.isQuiet = loudness.isQuiet
        status.isSilent = loudness.isSilent
        return status
    }

    /// Says how the next packet that waits follows what is decoded.
    @_noAllocation @_noLocks
    private func describe(_ entry: PacketStore.Entry, _ status: inout PlayoutStatus) {
        let gap = Int(entry.timestamp &- nextTimestamp)
        guard gap > 0 else {
            status.next = .ready
            status.readySamples = queue.readySamples(from: entry.sequence)
            return
        }
        // After a pause of the sender's the numbers that are missing right before tell how much of the gap is lost sound.
        var missing: Int64 = 0
        if isDiscontinuous {
            let most = entry.sequence &- nextSequence
            while missing < most, !queue.isSoundless(entry.sequence &- missing &- 1) { missing &+= 1 }
        }
        let lost = isDiscontinuous ? min(Int(missing) &* Int(entry.samples), gap) : gap
        let silence = entry.sequence == nextSequence ? gap : gap &- lost
        if silence > 0 {
            status.next = .afterSilence(samples: silence)
            status.excessSamples &-= silence
        } else {
            status.next = .afterLoss(samples: gap, restorable: Int(entry.restorableSamples))
        }
    }

    @_noAllocation @_noLocks
    private mutating func carryOut(_ decision: PlayoutDecision, _ now: Instant, _ frame: inout PulledFrame) {
        switch decision {
        case .play: play(now)
        case .conceal(let count): hold(count, &frame)
        case .coverLoss(let count): coverLoss(count, &frame)
        case .recoverWithFEC(let count): recover(count, &frame)
        case .discard: discardNext()
        case .skip(let count):
            skippedSamples &+= count
            heldSamples = max(heldSamples &- count, 0)
        case .jump(let count):
            nextTimestamp &+= Int64(count)
            heldSamples = max(heldSamples &- count, 0)
            decoders.discardSaved()
        case .comfortNoise(let count):
            makeUp(count)
            frame.silentSamples &+= count
        case .accelerate(let most):
            hasStretched = true
            let threshold: Float = loudness.isQuiet ? -1 : 0.6
            let removed = TimeStretch.accelerate(&samples, atMost: most, threshold: threshold)
            noteStretch(-removed, &frame)
        case .decelerate(let shortest, _):
            hasStretched = true
            let threshold: Float = shortest > 0 || loudness.isQuiet ? -1 : 0.6
            let added = TimeStretch.decelerate(&samples, atLeast: shortest, threshold: threshold)
            noteStretch(added, &frame)
        case .handOut: break
        }
    }

    @_noAllocation @_noLocks
    private mutating func noteStretch(_ change: Int, _ frame: inout PulledFrame) {
        samplesSinceStretch = 0
        frame.stretchedSamples &+= change
    }
}
