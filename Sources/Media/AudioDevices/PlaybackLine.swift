internal import Realtime
internal import Core

/// One card's playback, from the worker's ring to samples at the card's rate, with the delay kept at its target.
///
/// The delay is that of the first sample of a frame, from the worker's hands to the card: what waits in the ring by the
/// worker's clock, the resampler, the card's queue. The worker's clock is known from its marks, so the saw-tooth of the
/// ring's level does not matter.
struct PlaybackLine: ~Copyable {
    private var ring: AudioRing.Consumer
    private var marks: SPSCRing<LineMark>.Consumer
    private var resampler: ClockResampler?
    private var loop = DriftLoop(targetSamples: 0)
    private var margin: DelayMargin
    private var mark: LineMark?
    private var isActive = false
    /// Samples taken from the ring.
    private var taken = 0
    /// Samples on their way into the resampler.
    private var input = SampleBuffer(capacity: 4_096)
    private var inputStart = 0
    private var inputEnd = 0
    /// Samples still to be left out; if negative, silence still to be put in.
    private var adjustment = 0
    private var queueTargetSamples = 0.0
    private var cardRate = 48_000
    private(set) var statistics = LineStatistics()

    /// The least margin against a worker that comes late: 1 ms.
    private static var leastMargin: Int { 48 }

    init(_ ring: consuming AudioRing.Consumer, _ marks: consuming SPSCRing<LineMark>.Consumer) {
        self.ring = ring
        self.marks = marks
        margin = DelayMargin(leastSamples: Self.leastMargin, mostSamples: 480)
    }

    /// A card has been opened. Allocates.
    ///
    /// - Returns: False if the resampler cannot do the card's rate.
    mutating func open(rate: Int) -> Bool {
        guard let resampler = ClockResampler(from: 48_000, to: rate) else { return false }
        self.resampler = consume resampler
        cardRate = rate
        statistics.resamplerMilliseconds = Double(self.resampler?.latencySamples ?? 0) / 48
        restart()
        return true
    }

    /// The card restarts, with this many of its frames as its queue from now on.
    @_noAllocation @_noLocks
    mutating func begin(queueFrames: Int) {
        queueTargetSamples = Double(queueFrames) * 48_000 / Double(cardRate)
        setTarget()
        restart()
    }

    /// Forgets what lies between the ring and the card; what was learnt of the drift stays.
    @_noAllocation @_noLocks
    private mutating func restart() {
        isActive = false
        adjustment = 0
        inputStart = 0
        inputEnd = 0
        loop.realign()
        resampler?.reset()
    }

    @_noAllocation @_noLocks
    private mutating func setTarget() {
        let target = queueTargetSamples + statistics.resamplerMilliseconds * 48 + Double(margin.samples)
        // A pause adds delay, not a rate: sound was missing just now.
        let rise = Int(target - loop.targetSamples)
        let isByPause = isActive && rise >= 24
        if isByPause { adjustment &-= rise }
        loop.retarget(samples: target, isThere: isByPause)
        statistics.targetMilliseconds = loop.targetSamples / 48
    }

    /// Reads the worker's marks.
    ///
    /// - Returns: Whether the worker is at work.
    @_noAllocation @_noLocks
    private mutating func follow(at now: Instant) -> Bool {
        while let next = marks.pop() {
            mark = next
            if isActive { adjustment &+= Int(next.skipped) }
        }
        guard let mark, mark.isCurrent(at: now) else {
            isActive = false
            statistics.isInUse = false
            return false
        }
        if !isActive {
            isActive = true
            loop.realign()
        }
        statistics.isInUse = true
        return true
    }

    /// Samples of 48 kHz between the worker's hands and the card's queue, by the worker's clock.
    @_noAllocation @_noLocks
    private func held(at now: Instant) -> Double {
        guard let mark else { return 0 }
        return mark.position(at: now) - Double(taken) + Double(inputEnd - inputStart) - Double(adjustment)
    }

    /// Measures the delay, and corrects it if need be. Before ``fill(_:want:must:at:)``.
    ///
    /// - Parameters:
    ///   - queueFrames: Our frames that the card has not played yet.
    ///   - behindFrames: Frames of delay behind that queue.
    @_noAllocation @_noLocks
    mutating func measure(queueFrames: Int, behindFrames: Int, at now: Instant) {
        statistics.cardMilliseconds = Double(queueFrames) * 1_000 / Double(cardRate)
        statistics.behindCardMilliseconds = Double(behindFrames) * 1_000 / Double(cardRate)
        guard follow(at: now) else { return }
        let ringSamples = held(at: now)
        let delay =
            ringSamples + statistics.resamplerMilliseconds * 48 + Double(queueFrames) * 48_000 / Double(cardRate)
        apply(loop.add(delaySamples: delay, at: now))
        if margin.decay(at: now) { setTarget() }
        statistics.ringMilliseconds = ringSamples / 48
        statistics.note(loop)
        // A card that is fast empties its queue, and the loop sees the delay shrink.
        statistics.driftPPM = -loop.driftPPM
    }

    @_noAllocation @_noLocks
    private mutating func apply(_ verdict: DriftLoop.Verdict) {
        switch verdict {
        case .none: break
        case .correct: resampler?.setCorrection(ppm: loop.correctionPPM)
        case .jump(let samples): adjustment &+= samples
        }
    }

    /// Fills `output` from `start` on with samples for the card: `want` of them if there is enough, and at least `must`,
    /// with silence for what is missing.
    ///
    /// - Returns: How many.
    @_noAllocation @_noLocks
    mutating func fill(
        _ output: inout MutableSpan<Int16>, from start: Int, want: Int, must: Int, at now: Instant
    ) -> Int {
        let end = start &+ max(0, min(want, output.count - start))
        let least = min(end, start &+ must)
        var place = start
        while place < end {
            if inputStart == inputEnd { refill(forOutput: end - place) }
            if inputStart == inputEnd {
                guard place < least || !isActive else { break }
                missing(forOutput: (isActive ? least : end) - place, at: now)
            }
            guard let (consumed, produced) = resample(&output, at: place, limit: end), consumed > 0 || produced > 0
            else { break }
            inputStart &+= consumed
            place &+= produced
        }
        statistics.cardFrames &+= place &- start
        return place &- start
    }

    @_noAllocation @_noLocks
    private mutating func resample(_ output: inout MutableSpan<Int16>, at offset: Int, limit: Int)
        -> (consumed: Int, produced: Int)?
    {
        resampler?.process(
            input, from: inputStart, to: inputEnd, into: &output, at: offset, limit: limit)
    }

    /// Takes from the ring what the next `count` samples for the card need.
    @_noAllocation @_noLocks
    private mutating func refill(forOutput count: Int) {
        inputStart = 0
        inputEnd = 0
        guard isActive else { return }
        let needed = min(resampler?.inputCount(forOutput: count) ?? 0, input.capacity)
        if adjustment < 0 {
            inputEnd = min(-adjustment, needed)
            adjustment &+= inputEnd
            silence(upTo: inputEnd)
            return
        }
        while adjustment > 0 {
            let dropped = read(min(adjustment, input.capacity))
            adjustment &-= dropped
            if dropped == 0 { return }
        }
        inputEnd = read(needed)
    }

    @_noAllocation @_noLocks
    private mutating func read(_ count: Int) -> Int {
        let read = Self.read(count, from: &ring, into: &input)
        taken &+= read
        return read
    }

    @_noAllocation @_noLocks
    private static func read(
        _ count: Int, from ring: inout AudioRing.Consumer, into samples: inout SampleBuffer
    ) -> Int {
        var space = samples.mutableSamples(count)
        return ring.read(into: &space)
    }

    /// Replaces missing samples by silence.
    @_noAllocation @_noLocks
    private mutating func missing(forOutput count: Int, at now: Instant) {
        inputStart = 0
        inputEnd = max(1, min(resampler?.inputCount(forOutput: count) ?? 1, input.capacity))
        silence(upTo: inputEnd)
        guard isActive else { return }
        statistics.missingSamples &+= inputEnd
        // A late frame is played from the position that it would have reached by now. After a longer stall, playback
        // restarts.
        if inputEnd <= 960 { adjustment &+= inputEnd }
        margin.grow(missing: inputEnd, at: now)
        setTarget()
    }

    @_noAllocation @_noLocks
    private mutating func silence(upTo count: Int) {
        var space = input.mutableSamples(count)
        for index in 0..<space.count { space[index] = 0 }
    }

    /// Runs the line without a card: the worker's samples are dropped at the rate at which they come.
    @_noAllocation @_noLocks
    mutating func runWithoutCard(at now: Instant) {
        guard follow(at: now) else { return }
        inputStart = 0
        inputEnd = 0
        adjustment = 0
        let surplus = held(at: now) - loop.targetSamples
        var left = surplus > 0 ? Int(surplus) : 0
        while left > 0 {
            let dropped = read(min(left, input.capacity))
            left &-= dropped
            if dropped == 0 { break }
        }
        statistics.ringMilliseconds = held(at: now) / 48
        loop.realign()
    }

    /// Counts an xrun of the card.
    @_noAllocation @_noLocks
    mutating func countXrun() { statistics.xruns &+= 1 }
}

extension LineStatistics {
    /// Takes over what the loop knows.
    @_noAllocation @_noLocks
    mutating func note(_ loop: DriftLoop) {
        heldMilliseconds = loop.delaySamples / 48
        targetMilliseconds = loop.targetSamples / 48
        let error = heldMilliseconds - targetMilliseconds
        worstErrorMilliseconds = max(worstErrorMilliseconds, error < 0 ? -error : error)
        driftPPM = loop.driftPPM
        correctionPPM = loop.correctionPPM
        jumps = loop.jumps
    }
}
