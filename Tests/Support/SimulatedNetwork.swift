import Glibc
public import Core

/// One direction of a path: told when a packet is sent, it says when, if at all, the packet arrives.
///
/// Pure and seeded: the same profile and seed give the same arrivals on every machine.
public struct SimulatedNetwork: Sendable {
    /// When one packet arrives.
    public struct Delivery: Equatable, Sendable {
        /// `nil` if the packet is lost.
        public var arrival: Instant?
        /// When a second copy of it arrives, if the path duplicated it.
        public var duplicate: Instant?
    }

    private let profile: NetworkProfile
    private var random: SeededGenerator
    private var isLosing = false
    private var isBusy = false
    private var load = 0.0
    /// When the last packet that kept its order arrived.
    private var lastArrival: Int64 = .min
    /// Stalls do not begin at the same moment for every seed.
    private let stallOffset: Double

    /// A path like `profile`, with one of its possible courses for each `seed`.
    public init(_ profile: NetworkProfile, seed: UInt64) {
        self.profile = profile
        random = SeededGenerator(seed: seed)
        stallOffset = profile.stallEveryMilliseconds * Double.random(in: 0..<1, using: &random)
        load = Self.gaussian(&random)
    }

    /// When the sender, by its own drifting clock, sends what it captured `mediaTime` after its start.
    public func sendTime(mediaTime: Duration) -> Instant {
        Instant(nanoseconds: Int64(Double(mediaTime.nanoseconds) * (1 - profile.clockDriftPPM / 1e6)))
    }

    /// Sends one packet at `now`; calls must not go back in time.
    public mutating func send(at now: Instant) -> Delivery {
        let milliseconds = Double(now.nanoseconds) / 1e6
        // Every packet takes the same random numbers, so that one impairment does not change another's pattern.
        let drawn = jitterMilliseconds()
        let jitter = milliseconds < profile.jitterEndsAtMilliseconds ? drawn : 0
        let isLost = decideLoss()
        let detour = Double.random(in: 0..<1, using: &random) < profile.reorderedShare
        let detourLength = Double.random(in: 0..<1, using: &random) * profile.reorderMilliseconds
        let isDuplicated = Double.random(in: 0..<1, using: &random) < profile.duplicatedShare
        guard !isLost, !profile.outages.contains(where: { $0.contains(milliseconds) }) else { return Delivery() }

        var arrival = endOfStall(milliseconds + profile.baseDelayMilliseconds + jitter)
        if detour { arrival += detourLength }
        var nanoseconds = Int64(arrival * 1e6)
        if !detour {
            nanoseconds = max(nanoseconds, lastArrival)
            lastArrival = nanoseconds + 100_000  // 0.1 ms to receive one.
        }
        let copy = isDuplicated ? Instant(nanoseconds: nanoseconds + 3_000_000) : nil
        return Delivery(arrival: Instant(nanoseconds: nanoseconds), duplicate: copy)
    }

    private mutating func jitterMilliseconds() -> Double {
        switch profile.jitter {
        case .none: return 0
        case .uniform(let most): return Double.random(in: 0..<1, using: &random) * most
        case .exponential(let mean): return Self.exponential(mean, &random)
        case .wifi(let mean):
            let change = Double.random(in: 0..<1, using: &random)
            isBusy = isBusy ? change >= 0.3 : change < 0.1
            return Self.exponential(isBusy ? 1.3 * mean : 0.6 * mean, &random)
        case .lte(let mean):
            load = 0.92 * load + (1 - 0.92 * 0.92).squareRoot() * Self.gaussian(&random)
            var delay = 0.9 * mean * exp(0.6 * load)
            while Double.random(in: 0..<1, using: &random) < 0.1 { delay += 8 }
            return delay
        }
    }

    private mutating func decideLoss() -> Bool {
        let draw = Double.random(in: 0..<1, using: &random)
        switch profile.loss {
        case .none: return false
        case .independent(let share): return draw < share
        case .bursts(let share, let meanLength):
            let intoBad = share / (meanLength * (1 - share))
            isLosing = isLosing ? draw >= 1 / meanLength : draw < intoBad
            return isLosing
        }
    }

    /// `time`, or the end of the stall that it falls into.
    private func endOfStall(_ time: Double) -> Double {
        guard profile.stallEveryMilliseconds > 0 else { return time }
        let phase = (time + stallOffset).truncatingRemainder(dividingBy: profile.stallEveryMilliseconds)
        return phase < profile.stallMilliseconds ? time + profile.stallMilliseconds - phase : time
    }

    private static func exponential(_ mean: Double, _ random: inout SeededGenerator) -> Double {
        -mean * log(Double.random(in: Double.ulpOfOne..<1, using: &random))
    }

    /// The sum of twelve even numbers is as good as normal.
    private static func gaussian(_ random: inout SeededGenerator) -> Double {
        (0..<12).reduce(-6.0) { sum, _ in sum + Double.random(in: 0..<1, using: &random) }
    }
}
