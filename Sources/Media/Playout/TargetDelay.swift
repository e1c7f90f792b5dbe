/// Chooses how long after the fastest path to play: the delay with the lowest cost in delay and in late packets.
///
/// Pulls are on a time grid, so only certain delays make sense: those at which a packet begins exactly where a pull
/// begins. A delay between two of them costs more without giving late packets more time.
struct TargetDelay {
    /// Delays that let a packet begin where a pull begins, one every `step`, as transits in nanoseconds.
    struct Grid {
        /// One of them; the others lie whole steps away.
        var origin: Int64
        var step: Int64
        /// A packet needed in the middle of a pull must be there this long before its first sample is played.
        var lead: Int64
        /// If a packet is slightly late, the pulls, and with them all delays of the grid, move later by this time.
        var patience: Int64

        @_noAllocation @_noLocks
        init(origin: Int64, step: Int64, lead: Int64, patience: Int64 = 0) {
            self.origin = origin
            self.step = step
            self.lead = lead
            self.patience = patience
        }

        /// The grid of pulls of `pullSamples`, which packets of `packetSamples` come for.
        ///
        /// - Parameters:
        ///   - transit: How long after its media time the next sample is played.
        ///   - waiting: Samples from that up to where a packet begins.
        @_noAllocation @_noLocks
        init(transit: Int64, waiting: Int, pullSamples: Int, packetSamples: Int, patience: Int64) {
            let step = Self.commonDivisor(pullSamples, packetSamples)
            origin = transit &- StreamClock.nanoseconds(samples: Int64(waiting % step))
            self.step = StreamClock.nanoseconds(samples: Int64(step))
            lead = StreamClock.nanoseconds(samples: Int64(max(pullSamples &- packetSamples, 0)))
            self.patience = patience
        }

        @_noAllocation @_noLocks
        private static func commonDivisor(_ left: Int, _ right: Int) -> Int {
            var (a, b) = (max(left, 1), max(right, 1))
            while b != 0 { (a, b) = (b, a % b) }
            return a
        }
    }

    /// The chosen playout transit in nanoseconds: play a sample this long after its media time.
    private(set) var transit: Int64 = 0
    private var hasChosen = false
    /// How much sound had been received when the delay last changed, in nanoseconds.
    private var chosenAt: Int64 = 0

    private let minimum: Int64
    /// The most delay above the baseline, in nanoseconds.
    let maximum: Int64
    private let initial: Int64
    private let costPerLatePercent: Float

    /// A packet must arrive this long before the pull that needs it, because the pull's clock and the arrival clock
    /// jitter.
    private static var safety: Int64 { @_noAllocation @_noLocks get { 1_000_000 } }
    /// How much cost a smaller or a larger delay must save, in milliseconds, to be worth the stretching. If at least
    /// four fifths of a small step would be saved, that is enough once the delay has been constant for a while.
    private static var worthLowering: Float { @_noAllocation @_noLocks get { 12 } }
    private static var worthShare: Float { @_noAllocation @_noLocks get { 0.8 } }
    /// 5 s.
    private static var rest: Int64 { @_noAllocation @_noLocks get { 5_000_000_000 } }
    private static var worthRaising: Float { @_noAllocation @_noLocks get { 2 } }
    /// The sound to receive before the delay may fall below the initial one: falling step by step costs more stretches
    /// than falling once.
    private static var start: Int64 { @_noAllocation @_noLocks get { 2_000_000_000 } }

    init(_ configuration: PlayoutConfiguration) {
        minimum = Int64(max(configuration.minimumDelayMilliseconds, 0)) * 1_000_000
        maximum = max(Int64(configuration.maximumDelayMilliseconds) * 1_000_000, minimum + 20_000_000)
        initial = Int64(max(configuration.initialDelayMilliseconds, 0)) * 1_000_000
        costPerLatePercent = Float(configuration.millisecondsPerLatePercent)
    }

    /// Chooses again from what `history` knows.
    ///
    /// - Parameter received: Nanoseconds of sound received since the stream began: little means that little is known.
    @_noAllocation @_noLocks
    mutating func update(_ history: borrowing ArrivalHistory, _ grid: Grid, received: Int64) {
        let floor = min(received < Self.start ? max(minimum, initial) : minimum, maximum)
        let baseline = history.baseline
        // The first level of the grid at or above the floor.
        let offset = (baseline &+ floor &- grid.origin) % grid.step
        let lowest = baseline &+ floor &- offset &+ (offset > 0 ? grid.step : 0)

        var best = lowest
        var bestCost = Float.infinity
        var level = lowest
        while level &- baseline <= maximum {
            if Float(level &- baseline) / 1e6 >= bestCost { break }
            let cost = cost(of: level, history, grid)
            if cost < bestCost {
                bestCost = cost
                best = level
            }
            level &+= grid.step
        }

        if hasChosen {
            let current = nearestLevel(to: transit, grid)
            let isAllowed = current >= lowest && current &- baseline <= maximum
            transit = current
            guard best != current else { return }
            let worth = best < current ? lowering(by: current &- best, received) : Self.worthRaising
            if isAllowed, bestCost + worth >= costWithPatience(of: current, history, grid) { return }
        }
        transit = best
        hasChosen = true
        chosenAt = received
    }

    /// How much cost a delay that is smaller by this many nanoseconds must save, in milliseconds.
    @_noAllocation @_noLocks
    private func lowering(by step: Int64, _ received: Int64) -> Float {
        guard received &- chosenAt > Self.rest else { return Self.worthLowering }
        return min(Self.worthLowering, Float(step) / 1e6 * Self.worthShare)
    }

    /// By how much earlier all pulls should take place for the lowest cost: in nanoseconds, from 0 to below a step.
    ///
    /// The phase of the grid, and so the delay, is arbitrary; moving it can save most of a step.
    @_noAllocation @_noLocks
    func worthwhileAdvance(_ history: borrowing ArrivalHistory, _ grid: Grid) -> Int64 {
        guard hasChosen else { return 0 }
        var (best, leastCost) = (Int64(0), cost(of: transit, history, grid))
        var shift: Int64 = 250_000
        while shift < grid.step, transit &- shift >= history.baseline &+ minimum &+ Self.safety {
            let cost = cost(of: transit &- shift, history, grid)
            if cost < leastCost { (best, leastCost) = (shift, cost) }
            shift &+= 250_000
        }
        return best
    }

    /// Records that pulls come earlier by this time from now on.
    @_noAllocation @_noLocks
    mutating func advance(nanoseconds: Int64) { transit &-= nanoseconds }

    /// The next choice is made without regard to the last.
    @_noAllocation @_noLocks
    mutating func forgetChoice() { hasChosen = false }

    /// Milliseconds of delay that `level` costs, late packets converted to delay.
    @_noAllocation @_noLocks
    private func cost(of level: Int64, _ history: borrowing ArrivalHistory, _ grid: Grid) -> Float {
        let delay = level &- history.baseline
        let late = history.lateness(delay: delay &- grid.lead &- Self.safety)
        return Float(delay) / 1e6 + costPerLatePercent * 100 * late
    }

    /// The cost of `level` or, if that is lower, of a longer delay to which the pulls would move by themselves.
    @_noAllocation @_noLocks
    private func costWithPatience(of level: Int64, _ history: borrowing ArrivalHistory, _ grid: Grid) -> Float {
        var least = cost(of: level, history, grid)
        var shift: Int64 = 1_000_000
        while shift <= grid.patience {
            least = min(least, cost(of: level &+ shift, history, grid))
            shift &+= 1_000_000
        }
        return least
    }

    @_noAllocation @_noLocks
    private func nearestLevel(to transit: Int64, _ grid: Grid) -> Int64 {
        let offset = (transit &- grid.origin) % grid.step
        let below = transit &- offset &- (offset < 0 ? grid.step : 0)
        return transit &- below > grid.step / 2 ? below &+ grid.step : below
    }
}
