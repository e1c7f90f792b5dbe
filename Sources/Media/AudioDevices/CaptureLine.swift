internal import Realtime
internal import Core

/// One card's capture, from samples at the card's rate to the worker's ring, with the delay kept at its target.
///
/// The delay is that of the last sample of a frame, from the card to the worker's hands: the card's queue, the
/// resampler, what waits in the ring by the worker's clock. A worker whose frames come at any time between two wake-ups
/// of the card needs a period of delay; one whose frames come soon after the wake-ups needs only that wait.
///
/// Each sample is accompanied by what the card played at the time: see ``EchoReference``.
struct CaptureLine: ~Copyable {
    private var ring: AudioRing.Producer
    private var referenceRing: AudioRing.Producer
    private var marks: SPSCRing<LineMark>.Consumer
    private var boundaries: SPSCRing<PeriodBoundary>.Producer
    private var resampler: ClockResampler?
    /// What the card plays meanwhile.
    var reference = EchoReference()
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
    private var periodFrames = 480
    private var periodNanoseconds: Int64 = 10_000_000
    /// Frames of the card's since it began, a whole number of periods at each of its interrupts.
    private var framesRead = 0
    /// The part of the target that is there for the worker's frames to wait for the card's wake-ups.
    private var waitSamples = 480.0
    private var lastMeasured = Instant(nanoseconds: 0)
    private var activeSince = Instant(nanoseconds: 0)
    private var cardRate = 48_000
    private(set) var statistics = LineStatistics()

    /// The least margin against a worker or a card that comes late: 2 ms.
    private static var leastMargin: Int { 96 }
    /// How fast the target follows a wait that has become shorter: 0.25 ms a second, in samples.
    private static var approach: Double { @_noAllocation @_noLocks get { 12 } }
    /// The first 0.8 s of a worker, in which its sound has no listener yet.
    private static var beginning: Int64 { @_noAllocation @_noLocks get { 800_000_000 } }

    init(
        _ ring: consuming AudioRing.Producer, reference: consuming AudioRing.Producer,
        _ marks: consuming SPSCRing<LineMark>.Consumer, _ boundaries: consuming SPSCRing<PeriodBoundary>.Producer
    ) {
        self.ring = ring
        referenceRing = reference
        self.marks = marks
        self.boundaries = boundaries
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

    /// Starts the echo reference: what the card plays while it captures. Call it after ``open(rate:)``. Allocates.
    mutating func openReference(to playback: CardGrant) {
        reference.open(
            playback: playback, captureRate: cardRate, captureLatencyMilliseconds: statistics.resamplerMilliseconds)
    }

    /// The card restarts, and will deliver its frames in pieces of this size.
    @_noAllocation @_noLocks
    mutating func begin(periodFrames: Int) {
        periodSamples = Double(periodFrames) * 48_000 / Double(cardRate)
        periodNanoseconds = Int64(periodFrames) * 1_000_000_000 / Int64(cardRate)
        self.periodFrames = max(1, periodFrames)
        framesRead = 0
        waitSamples = periodSamples
        setTarget()
        restart()
    }

    @_noAllocation @_noLocks
    private mutating func restart() {
        isActive = false
        adjustment = 0
        loop.realign()
        resampler?.reset()
        reference.loseAlignment()
    }

    @_noAllocation @_noLocks
    private mutating func setTarget() {
        let target = waitSamples + statistics.resamplerMilliseconds * 48 + Double(margin.samples)
        // A pause adds delay, not a rate: sound was missing just now.
        let rise = Int(target - loop.targetSamples)
        let isByPause = isActive && rise >= 24
        if isByPause { adjustment &-= rise }
        loop.retarget(samples: target, isThere: isByPause)
        statistics.targetMilliseconds = loop.targetSamples / 48
    }

    /// Adapts to the worker's wait: to a longer one at once, to a shorter one so slowly (except at the beginning) that
    /// resampling reduces the delay inaudibly.
    @_noAllocation @_noLocks
    private mutating func followWait(at now: Instant) {
        let seconds = max(0, min(0.1, Double(lastMeasured.nanoseconds(to: now)) * 1e-9))
        lastMeasured = now
        var wanted = periodSamples
        if let mark, mark.wait >= 0 { wanted = min(wanted, Double(mark.wait) * 48e-6) }
        guard wanted != waitSamples else { return }
        if activeSince.nanoseconds(to: now) < Self.beginning {
            waitSamples = wanted
            loop.realign()
        } else {
            waitSamples = max(wanted, waitSamples - Self.approach * seconds)
        }
        setTarget()
    }

    @_noAllocation @_noLocks
    private mutating func follow(at now: Instant) -> Bool {
        while let next = marks.pop() {
            mark = next
            // The first frames after a pause find nothing, which is no fault.
            if next.missing > 0, isActive {
                statistics.missingSamples &+= Int(next.missing)
                // Silence replaced them: when they arrive, it is too late for them.
                adjustment &+= Int(next.missing)
                // Frames that follow the card's periods lack a whole period of samples when it is a little late. They
                // wait longer from now on, up to half a period; below that a margin would not help.
                guard next.wait < 0 || Int64(next.wait) &+ 1_000_000 >= periodNanoseconds / 2 else { continue }
                margin.grow(missing: Int(next.missing), at: now)
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
            activeSince = now
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
        noteBoundary(queueFrames: queueFrames, at: now)
        guard follow(at: now) else { return }
        followWait(at: now)
        let ringSamples = held(at: now)
        let delay =
            ringSamples + statistics.resamplerMilliseconds * 48 + Double(queueFrames) * 48_000 / Double(cardRate)
        apply(loop.add(delaySamples: delay, at: now))
        if margin.decay(at: now) { setTarget() }
        // A worker that takes what has just come has taken less than its clock says.
        statistics.ringMilliseconds = max(0, ringSamples / 48)
        statistics.cardMilliseconds += min(0, ringSamples / 48)
        statistics.note(loop)
    }

    /// Reports to the worker when a period was full. If the card knows its position within the period, that is exact.
    @_noAllocation @_noLocks
    private mutating func noteBoundary(queueFrames: Int, at now: Instant) {
        let end = framesRead &+ queueFrames
        guard end / periodFrames > framesRead / periodFrames else { return }
        let since = Int64(end % periodFrames) &* 1_000_000_000 / Int64(cardRate)
        _ = boundaries.push(
            PeriodBoundary(nanoseconds: now.nanoseconds &- since, periodNanoseconds: periodNanoseconds))
    }

    @_noAllocation @_noLocks
    private mutating func apply(_ verdict: DriftLoop.Verdict) {
        switch verdict {
        case .none: break
        case .correct:
            resampler?.setCorrection(ppm: loop.correctionPPM)
            reference.setCorrection(ppm: loop.correctionPPM)
        case .jump(let samples): adjustment &+= samples
        }
    }

    /// Counts frames that were read from the card, to be taken or not.
    @_noAllocation @_noLocks
    mutating func count(framesRead count: Int) { framesRead &+= count }

    /// Takes `count` samples that the card has captured.
    @_noAllocation @_noLocks
    mutating func take(_ samples: Span<Int16>, count: Int) {
        statistics.cardFrames &+= count
        guard isActive else { return reference.pass(count) }
        var consumed = 0
        while consumed < count {
            guard let (read, made) = resample(samples, from: consumed, to: count), read > 0 || made > 0 else { return }
            consumed &+= read
            reference.make(made)
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
        // The worker finds as much of the reference as of what was captured: both get as much, and the reference first.
        let room = min(end - start, min(ring.space, referenceRing.space))
        _ = Self.write(reference.output, from: start, to: start + room, into: &referenceRing)
        let taken = Self.write(output, from: start, to: start + room, into: &ring)
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
            let room = min(piece, min(ring.space, referenceRing.space))
            _ = Self.write(silence, from: 0, to: room, into: &referenceRing)
            let taken = Self.write(silence, from: 0, to: room, into: &ring)
            given &+= taken
            written &+= taken
            // Full: the worker has stopped without saying so. There is no use in owing it silence.
            if taken < piece { return count }
        }
        return written
    }

    /// Runs the line without a card: the worker gets silence at its own pace.
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
