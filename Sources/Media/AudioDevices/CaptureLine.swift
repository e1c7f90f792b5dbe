internal import Realtime
internal import Timekeeping

/// One card's capture, from samples at the card's rate to the worker's ring, with the delay held at its target.
///
/// The delay is that of the last sample of a frame, from the card to the worker's hands: the card's queue, the
/// resampler, what waits in the ring by the worker's clock.
struct CaptureLine: ~Copyable {
    private var ring: AudioRing.Producer
    private var marks: SPSCRing<LineMark>.Consumer
    private var resampler: ClockResampler?
    private var loop = DriftLoop(targetSamples: 0)
    private var margin: DelayMargin
    private var mark: LineMark?
    private var isActive = false
    /// Samples put into the ring.
    private var given = 0
    private var output = SampleBuffer(capacity: 4_096)
    private let silence = SampleBuffer(capacity: 480)
    /// Samples still to be left out; if negative, silence still to be put in.
    private var adjustment = 0
    private var periodSamples = 480.0
    private var cardRate = 48_000
    private(set) var statistics = LineStatistics()

    /// The least margin against a worker or a card that comes late: 2 ms.
    private static var leastMargin: Int { 96 }

    init(_ ring: consuming AudioRing.Producer, _ marks: consuming SPSCRing<LineMark>.Consumer) {
        self.ring = ring
        self.marks = marks
        margin = DelayMargin(leastSamples: Self.leastMargin, mostSamples: 528)
    }

    /// A card has been opened. Allocates.
    ///
    /// - Returns: False if the resampler cannot do the card's rate.
    mutating func open(rate: Int) -> Bool {
        guard let resampler = ClockResampler(from: rate, to: 48_000) else { return false }
        statistics.resamplerMilliseconds = Double(resampler.latencySamples) * 1_000 / Double(rate)
        self.resampler = consume resampler
        cardRate = rate
        restart()
        return true
    }

    /// The card begins anew, and will give its frames in pieces of this size.
    @_noAllocation @_noLocks
    mutating func begin(periodFrames: Int) {
        periodSamples = Double(periodFrames) * 48_000 / Double(cardRate)
        setTarget()
        restart()
    }

    @_noAllocation @_noLocks
    private mutating func restart() {
        isActive = false
        adjustment = 0
        loop.realign()
        resampler?.reset()
    }

    @_noAllocation @_noLocks
    private mutating func setTarget() {
        loop.retarget(samples: periodSamples + statistics.resamplerMilliseconds * 48 + Double(margin.samples))
        statistics.targetMilliseconds = loop.targetSamples / 48
    }

    @_noAllocation @_noLocks
    private mutating func follow(at now: Instant) -> Bool {
        while let next = marks.pop() {
            mark = next
            // The first frames after a pause find nothing, which is no fault.
            if next.missing > 0, isActive {
                statistics.missingSamples &+= Int(next.missing)
                margin.grow(at: now)
                setTarget()
            }
        }
        guard let mark, mark.isCurrent(at: now) else {
            isActive = false
            statistics.isInUse = false
            return false
        }
        if !isActive {
            isActive = true
            adjustment = 0
            loop.realign()
        }
        statistics.isInUse = true
        return true
    }

    /// Samples of 48 kHz that the ring holds for the worker at its next frame but what that frame takes, by its clock.
    @_noAllocation @_noLocks
    private func held(at now: Instant) -> Double {
        guard let mark else { return 0 }
        return Double(given) - mark.position(at: now) - Double(adjustment)
    }

    /// Measures the delay, and corrects it if need be. Before ``take(_:count:)``.
    ///
    /// - Parameters:
    ///   - queueFrames: Frames that the card has captured and that are about to be read.
    ///   - behindFrames: Frames of delay before that queue.
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
    }

    @_noAllocation @_noLocks
    private mutating func apply(_ verdict: DriftLoop.Verdict) {
        switch verdict {
        case .none: break
        case .correct: resampler?.setCorrection(ppm: loop.correctionPPM)
        case .jump(let samples): adjustment &+= samples
        }
    }

    /// Takes `count` samples that the card has captured.
    @_noAllocation @_noLocks
    mutating func take(_ samples: Span<Int16>, count: Int) {
        statistics.cardFrames &+= count
        guard isActive else { return }
        var consumed = 0
        while consumed < count {
            guard let (read, made) = resample(samples, from: consumed, to: count), read > 0 || made > 0 else { return }
            consumed &+= read
            give(made)
        }
    }

    @_noAllocation @_noLocks
    private mutating func resample(_ samples: Span<Int16>, from start: Int, to end: Int)
        -> (consumed: Int, produced: Int)?
    {
        resampler?.process(samples, from: start, to: end, into: &output)
    }

    /// Puts the first `count` samples of `output` into the ring, with what is to be left out or put in before them.
    @_noAllocation @_noLocks
    private mutating func give(_ count: Int) {
        if adjustment < 0 {
            let silent = write(silence: -adjustment)
            adjustment &+= silent
        }
        guard adjustment > 0 else { return write(from: 0, to: count) }
        let left = min(adjustment, count)
        adjustment &-= left
        write(from: left, to: count)
    }

    @_noAllocation @_noLocks
    private mutating func write(from start: Int, to end: Int) {
        guard start < end else { return }
        let taken = Self.write(output, from: start, to: end, into: &ring)
        given &+= taken
        statistics.overrunSamples &+= end - start - taken
    }

    // Copying a span is a plain copy; unoptimised code counts it as reference counting, so it is not analysed.
    @_semantics("no_performance_analysis") @inline(__always)
    private static func write(
        _ samples: borrowing SampleBuffer, from start: Int, to end: Int, into ring: inout AudioRing.Producer
    ) -> Int {
        ring.write(samples.samples(end).extracting(start..<end))
    }

    @_noAllocation @_noLocks
    private mutating func write(silence count: Int) -> Int {
        var written = 0
        while written < count {
            let piece = min(count - written, silence.capacity)
            let taken = Self.write(silence, from: 0, to: piece, into: &ring)
            given &+= taken
            written &+= taken
            // Full: the worker has stopped without saying so. There is no use in owing it silence.
            if taken < piece { return count }
        }
        return written
    }

    /// Runs the line without a card: the worker is given silence at the pace at which it takes it.
    @_noAllocation @_noLocks
    mutating func runWithoutCard(at now: Instant) {
        guard follow(at: now) else { return }
        adjustment = 0
        let lack = loop.targetSamples - held(at: now)
        if lack >= 1 { _ = write(silence: Int(lack)) }
        statistics.ringMilliseconds = held(at: now) / 48
        loop.realign()
    }

    /// Counts an xrun of the card.
    @_noAllocation @_noLocks
    mutating func countXrun() { statistics.xruns &+= 1 }
}
