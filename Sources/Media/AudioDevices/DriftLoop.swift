internal import Core

/// Keeps the delay of one direction at its target although the card's clock and the worker's run at different rates.
///
/// An observer learns the drift between the clocks from the difference between the delay and the delay that the
/// resampling rate should have caused. So neither a delay that is far off, nor a rate that may not change fast,
/// misleads it. A controller chooses the rate that compensates the drift and corrects the delay; the rate changes
/// slowly enough to be inaudible. A delay that is too far off for that is corrected at once, by dropping samples or
/// inserting silence: a jump.
struct DriftLoop: Sendable {
    /// The result of a measurement.
    enum Verdict: Equatable, Sendable {
        /// Nothing is to be done.
        case none
        /// ``correctionPPM`` has changed.
        case correct
        /// Remove this number of samples from the queue at once; insert them if it is negative.
        case jump(samples: Int)
    }

    /// The delay to hold, in samples of 48 kHz.
    private(set) var targetSamples: Double
    /// The latest delay, the median over a tenth of a second, in samples of 48 kHz.
    private(set) var delaySamples: Double
    /// How much faster than nominal samples are to be consumed, in millionths.
    private(set) var correctionPPM = 0.0
    /// How much the two clocks differ, as learnt, in millionths.
    private(set) var driftPPM = 0.0
    /// Delays that were put right at once.
    private(set) var jumps = 0

    private var isAligned = false
    /// How far the delay is from its target, as the observer has it, in ms.
    private var offset = 0.0
    /// For how long the delay has been near its target, or far from it.
    private var calmSeconds = 0.0
    private var farSeconds = 0.0
    private var isHurrying = false
    private var window = InlineArray<32, Double>(repeating: 0)
    private var windowCount = 0
    private var windowStart = Instant(nanoseconds: 0)
    private var lastUpdate = Instant(nanoseconds: 0)

    /// - Parameter targetSamples: The delay to hold, in samples of 48 kHz.
    @_noAllocation @_noLocks
    init(targetSamples: Double) {
        self.targetSamples = targetSamples
        delaySamples = targetSamples
    }

    /// Sets another target; it is approached by resampling, or with a jump if it is far.
    ///
    /// - Parameter isThere: The delay has been changed as much at once.
    @_noAllocation @_noLocks
    mutating func retarget(samples: Double, isThere: Bool = false) {
        if !isThere { offset -= (samples - targetSamples) / 48 }
        targetSamples = samples
    }

    /// Makes the next measurement correct the delay at once, even a small one. The learned drift stays.
    @_noAllocation @_noLocks
    mutating func realign() {
        isAligned = false
        isHurrying = false
        offset = 0
        (calmSeconds, farSeconds) = (0, 0)
        windowCount = 0
        correctionPPM = driftPPM
    }

    /// Takes in one measurement of the delay, in samples of 48 kHz.
    @_noAllocation @_noLocks
    mutating func add(delaySamples delay: Double, at now: Instant) -> Verdict {
        if !isAligned {
            isAligned = true
            lastUpdate = now
            offset = 0
            delaySamples = targetSamples
            let samples = Self.rounded(delay - targetSamples)
            return samples == 0 ? .none : .jump(samples: samples)
        }
        if windowCount == 0 { windowStart = now }
        insert(delay)
        guard windowStart.nanoseconds(to: now) >= Self.windowNanoseconds else { return .none }
        delaySamples = window[windowCount / 2]
        windowCount = 0
        let error = delaySamples - targetSamples
        if abs(error) > Self.jumpSamples {
            jumps += 1
            realign()
            isAligned = true
            lastUpdate = now
            return .jump(samples: Self.rounded(error))
        }
        let seconds = max(0.05, min(0.5, Double(lastUpdate.nanoseconds(to: now)) * 1e-9))
        lastUpdate = now
        update(errorMilliseconds: error / 48, seconds: seconds)
        return .correct
    }

    /// One step. With the error in ms and rates in millionths, the delay changes by a thousandth of the rates' difference
    /// each second.
    @_noAllocation @_noLocks
    private mutating func update(errorMilliseconds error: Double, seconds: Double) {
        observe(error, seconds)
        settle(seconds)
        let slew = isHurrying ? Self.hurriedSlewPPM : Self.slewPPM
        // No faster than the rate can be brought back by the time the delay is there, with half of what is allowed.
        let braking = 1_000 * Self.root(1e-3 * slew * abs(offset))
        let wanted = driftPPM + Self.limited((isHurrying ? 1_000 : 300) * offset, to: braking)
        let step = slew * seconds
        correctionPPM += Self.limited(Self.limited(wanted, to: Self.correctionLimitPPM) - correctionPPM, to: step)
    }

    /// An observer of second order, whose gains are those of a critically damped one: quick at first, and the slower the
    /// longer the delay has been near its target.
    @_noAllocation @_noLocks
    private mutating func observe(_ error: Double, _ seconds: Double) {
        let predicted = offset + (driftPPM - correctionPPM) * 1e-3 * seconds
        let surprise = error - predicted
        // A thread stalled, or samples were inserted: this says nothing about clocks.
        guard abs(surprise) < 0.7 else {
            offset = error
            return
        }
        let frequency = calmSeconds < Self.calm ? 1.5 : max(0.15, 1.5 * Self.calm / calmSeconds)
        offset = predicted + min(1, 2 * frequency * seconds) * surprise
        driftPPM = Self.limited(
            driftPPM + 1_000 * frequency * frequency * seconds * surprise, to: Self.driftLimitPPM)
    }

    /// Hurries while the drift is being learnt, and from where the delay is far until it is back.
    @_noAllocation @_noLocks
    private mutating func settle(_ seconds: Double) {
        let distance = abs(offset)
        if distance < 0.5 {
            calmSeconds += seconds
            farSeconds = 0
        } else if distance > 1.2 {
            farSeconds += seconds
            // The drift was not what it was taken for.
            if farSeconds > 4 { calmSeconds = 0 }
        } else if calmSeconds < Self.calm {
            calmSeconds = 0
        }
        let isBack = distance < 0.3 && abs(correctionPPM - driftPPM) < 150
        isHurrying = calmSeconds < Self.calm || distance > 1.2 || isHurrying && !isBack
    }

    /// Keeps the window sorted. Measurements beyond its capacity say nothing new.
    @_noAllocation @_noLocks
    private mutating func insert(_ delay: Double) {
        guard windowCount < 32 else { return }
        var place = windowCount
        while place > 0, window[place - 1] > delay {
            window[place] = window[place - 1]
            place -= 1
        }
        window[place] = delay
        windowCount += 1
    }

    @_noAllocation @_noLocks
    private static func limited(_ value: Double, to limit: Double) -> Double { max(-limit, min(limit, value)) }

    /// Newton's square root: the library's is a call that unoptimised code cannot vouch for.
    @_noAllocation @_noLocks
    private static func root(_ value: Double) -> Double {
        var root = (value + 1) / 2
        for _ in 0..<8 { root = (root + value / root) / 2 }
        return root
    }

    @_noAllocation @_noLocks
    private static func rounded(_ value: Double) -> Int {
        let bounded = limited(value, to: 1e9)
        return Int(bounded < 0 ? bounded - 0.5 : bounded + 0.5)
    }

    private static var windowNanoseconds: Int64 {
        @_noAllocation @_noLocks get { 100_000_000 }
    }
    /// Beyond 8 ms, resampling would take too long.
    private static var jumpSamples: Double {
        @_noAllocation @_noLocks get { 384 }
    }
    /// Two clocks that are off by 1 500 each, the one the other way than the other, and some.
    private static var driftLimitPPM: Double {
        @_noAllocation @_noLocks get { 3_200 }
    }
    /// A thirteenth of a semitone, which is inaudible.
    private static var correctionLimitPPM: Double {
        @_noAllocation @_noLocks get { 4_500 }
    }
    /// Seconds near the target after which the drift is known well enough for haste to end.
    private static var calm: Double {
        @_noAllocation @_noLocks get { 3 }
    }
    private static var hurriedSlewPPM: Double {
        @_noAllocation @_noLocks get { 1_500 }
    }
    private static var slewPPM: Double {
        @_noAllocation @_noLocks get { 150 }
    }
}
