internal import Core

/// When packets came, compared with the fastest recent path: a histogram that forgets, and the path's baseline.
///
/// A packet's *transit* is its arrival minus its media time: delay plus an unknown constant. The baseline is the least
/// transit of the last seconds, so that a far clock that runs fast or slow (at most ±1 500 ppm) does not matter.
struct ArrivalHistory: ~Copyable {
    private let inPlace = InPlace()
    /// Bins of 1 ms: delays above the fastest path up to 511 ms, the last bin holding all beyond.
    static var binCount: Int { @_noAllocation @_noLocks get { 512 } }
    private static var binNanoseconds: Int64 { @_noAllocation @_noLocks get { 1_000_000 } }
    private static var bucketNanoseconds: Int64 { @_noAllocation @_noLocks get { 250_000_000 } }
    /// A baseline that moves by more at once is a new path, and what was learnt moves along; less is drift.
    private static var stepNanoseconds: Int64 { @_noAllocation @_noLocks get { 3_000_000 } }

    /// The least transit of about the last 4 s.
    private(set) var baseline: Int64 = 0
    /// Delays recorded, since the start.
    private(set) var count = 0
    /// Media time that passes until a delay counts 1/e.
    private let memoryNanoseconds: Float

    /// Packets that came in order: if one comes late, so do those behind it, and the gap grows with its lateness.
    private var weights = InlineArray<512, Float>(repeating: 0)
    /// Packets that came out of order or can be restored: each missing one is a separate gap.
    private var singleWeights = InlineArray<512, Float>(repeating: 0)
    /// Of all bins above each: their weight in `weights`, and their cost at delay 0.
    private var tailWeight = InlineArray<512, Float>(repeating: 0)
    private var tailCost = InlineArray<512, Float>(repeating: 0)
    /// Delays recorded, weighted and added up, in bins.
    private var delaySum: Float = 0
    private var totalWeight: Float = 0
    /// No bin above it holds anything worth counting.
    private var highest = 0
    private var nextWeight: Float = 1
    private var minima = InlineArray<16, Int64>(repeating: .max)
    private var bucket = 0
    private var bucketEnd: Int64 = .min
    private var steps = StepDetector()
    private var stall: LongStall
    /// Until then the path may go back to what it was before its last step.
    private var settledAt: Int64 = .min

    /// - Parameter longestDelay: The most delay that can be chosen, in nanoseconds.
    init(memoryMilliseconds: Int, longestDelay: Int64) {
        memoryNanoseconds = Float(max(memoryMilliseconds, 100)) * 1e6
        stall = LongStall(longestDelay: longestDelay)
    }

    /// Records a packet that arrived `transit` after its media time.
    ///
    /// - Parameters:
    ///   - duration: Nanoseconds of sound in the packet: how fast older packets fade.
    ///   - isOvertaken: A packet sent later came before it.
    @_noAllocation @_noLocks
    mutating func record(transit: Int64, at arrival: Int64, duration: Int64, isOvertaken: Bool) {
        if !isOvertaken, let least = steps.record(transit: transit, at: arrival, above: baseline) {
            beginPath(at: least, arrival)
        }
        // The first packet is the fastest so far.
        let delay = count == 0 ? 0 : transit &- baseline
        let isOfStall = stall.holds(transit: transit, delay: delay, duration: duration, isOvertaken: isOvertaken)
        updateBaseline(transit, arrival)
        guard !isOfStall else { return }
        let bin = Self.bin(transit &- baseline)
        highest = max(highest, bin)
        if count & 255 == 255 { forgetFaded() }
        if isOvertaken { singleWeights[bin] += nextWeight } else { weights[bin] += nextWeight }
        totalWeight += nextWeight
        delaySum += nextWeight * Float(bin)
        nextWeight *= 1 + Float(duration) / memoryNanoseconds
        if nextWeight > 1e6 { scaleWeights(by: 1e-6) }
        count &+= 1
        sumTails()
    }

    /// Records that waiting `delay` above the baseline would have restored a lost packet, with the weight `share`.
    @_noAllocation @_noLocks
    mutating func recordRestorable(delay: Int64, share: Float) {
        let bin = Self.bin(delay)
        highest = max(highest, bin)
        singleWeights[bin] += nextWeight * share
        totalWeight += nextWeight * share
        sumTails()
    }

    /// How much is missed by waiting only `delay` nanoseconds above the baseline: the share of packets that come
    /// later, 0…1, those in long gaps counted more than once.
    ///
    /// While little is known, delays are taken to fall off exponentially beyond those seen.
    @_noAllocation @_noLocks
    func lateness(delay: Int64) -> Float {
        guard totalWeight > 0 else { return 0 }
        guard delay >= 0 else { return 100 }
        let position = Float(delay) / Float(Self.binNanoseconds)
        let bin = Int(position)
        var late: Float = 0
        if bin <= highest {
            let own = weights[bin] + Self.singleCost * singleWeights[bin]
            late = own * (1 - position + Float(bin)) + tailCost[bin] - tailWeight[bin] * position / Self.gapBins
        }
        let priorWeight = Self.priorPackets * nextWeight
        let prior = priorWeight * Self.exponentialTail(position / max(delaySum / totalWeight, 0.1))
        return (late + prior) / (totalWeight + priorWeight)
    }

    /// The cost of a single missing packet, as a multiple of the first packet of a long gap: a single packet cannot be
    /// played late without shifting everything after it, unlike packets after a stall.
    private static var singleCost: Float { @_noAllocation @_noLocks get { 2.8 } }
    /// A gap this many bins longer is twice as bad for each packet in it.
    private static var gapBins: Float { @_noAllocation @_noLocks get { 14 } }
    /// The initial assumption has the weight of this many packets.
    private static var priorPackets: Float { @_noAllocation @_noLocks get { 20 } }

    /// e to the power of −`x`, within 2 % of 1, for `x` from 0 on.
    @_noAllocation @_noLocks
    private static func exponentialTail(_ x: Float) -> Float {
        // (1 + x/16)^−16.
        var power = 1 / (1 + x / 16)
        for _ in 0..<4 { power *= power }
        return power
    }

    @_noAllocation @_noLocks
    private static func bin(_ delay: Int64) -> Int {
        Int(min(max(delay / binNanoseconds, 0), Int64(binCount &- 1)))
    }

    /// Keeps the shape of the delays, and takes the next packet for the new baseline.
    @_noAllocation @_noLocks
    mutating func forgetBaseline() {
        count = 0
        for index in 0..<16 { minima[index] = .max }
        steps = StepDetector()
        stall.forgetPath()
        settledAt = .min
    }

    /// Whether the newest packet may be the first of a path that has become longer for good, which is not certain yet.
    var mayHaveStepped: Bool {
        @_noAllocation @_noLocks get { steps.isOpen }
    }

    /// Takes `least` for the baseline of a path that has become longer in one step. What was learnt of its jitter stays, and
    /// packets that were so late that they showed the step are where they are on the new path.
    @_noAllocation @_noLocks
    private mutating func beginPath(at least: Int64, _ arrival: Int64) {
        for index in 0..<16 { minima[index] = .max }
        minima[bucket] = least
        settledAt = arrival &+ Self.bucketNanoseconds &* 16
        let bins = Int(min((least &- baseline) / Self.binNanoseconds, Int64(Self.binCount)))
        baseline = least
        for index in Self.bin(StepDetector.leastStep)...max(highest, Self.bin(StepDetector.leastStep)) {
            let target = max(index &- bins, 0)
            if target != index { moveBin(index, to: target) }
        }
    }

    @_noAllocation @_noLocks
    private mutating func updateBaseline(_ transit: Int64, _ arrival: Int64) {
        if count == 0 { baseline = transit }
        // Only time in which packets come makes older minima expire: an outage teaches nothing about the path.
        if arrival >= bucketEnd {
            bucketEnd = arrival &+ Self.bucketNanoseconds
            bucket = (bucket &+ 1) & 15
            minima[bucket] = transit
        }
        minima[bucket] = min(minima[bucket], transit)
        var least = Int64.max
        for index in 0..<16 { least = min(least, minima[index]) }
        let change = least &- baseline
        baseline = least
        // A path that goes back to what it was has shown nothing new.
        if change < 0, arrival < settledAt { return }
        if abs(change) > Self.stepNanoseconds || count < 50 {
            shift(by: -Int(change / Self.binNanoseconds))
        }
    }

    @_noAllocation @_noLocks
    private mutating func sumTails() {
        var weight: Float = 0
        var cost: Float = 0
        var bin = highest
        while bin >= 0 {
            tailWeight[bin] = weight
            tailCost[bin] = cost
            weight += weights[bin]
            cost += weights[bin] * (1 + Float(bin) / Self.gapBins) + Self.singleCost * singleWeights[bin]
            bin &-= 1
        }
    }

    /// Lowers `highest` past bins whose weight has all but faded.
    @_noAllocation @_noLocks
    private mutating func forgetFaded() {
        let faded = totalWeight * 1e-6
        while highest > 0, weights[highest] + singleWeights[highest] < faded {
            totalWeight -= weights[highest] + singleWeights[highest]
            delaySum -= (weights[highest] + singleWeights[highest]) * Float(highest)
            weights[highest] = 0
            singleWeights[highest] = 0
            highest &-= 1
        }
    }

    /// Moves everything learnt `bins` up.
    @_noAllocation @_noLocks
    private mutating func shift(by bins: Int) {
        guard bins != 0 else { return }
        let last = Self.binCount &- 1
        highest = min(max(highest &+ bins, 0), last)
        if bins > 0 {
            for index in stride(from: last, through: 0, by: -1) {
                let target = min(index &+ bins, last)
                if target != index {
                    moveBin(index, to: target)
                }
            }
        } else if bins < 0 {
            for index in 0...last {
                let target = max(index &+ bins, 0)
                if target != index {
                    moveBin(index, to: target)
                }
            }
        }
    }

    @_noAllocation @_noLocks
    private mutating func moveBin(_ index: Int, to target: Int) {
        delaySum += (weights[index] + singleWeights[index]) * Float(target &- index)
        weights[target] += weights[index]
        singleWeights[target] += singleWeights[index]
        weights[index] = 0
        singleWeights[index] = 0
    }

    @_noAllocation @_noLocks
    private mutating func scaleWeights(by factor: Float) {
        for index in 0..<Self.binCount {
            weights[index] *= factor
            singleWeights[index] *= factor
        }
        delaySum *= factor
        totalWeight *= factor
        nextWeight *= factor
    }
}
