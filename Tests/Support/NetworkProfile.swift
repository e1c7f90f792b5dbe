/// What a path does to packets. Delays in milliseconds, shares 0…1.
public struct NetworkProfile: Sendable {
    /// How the delay of packets varies above the path's base delay.
    public enum Jitter: Sendable {
        /// Every packet takes the base delay.
        case none
        /// Independent, evenly spread from 0 to the given delay; packets keep their order.
        case uniform(milliseconds: Double)
        /// Independent, exponential, as many simulators have it; packets keep their order.
        case exponential(meanMilliseconds: Double)
        /// A shared radio channel: mostly quick, with spells in which others are sending.
        case wifi(meanMilliseconds: Double)
        /// A scheduled mobile network: a load that wanders, and link-layer retransmissions of 8 ms each.
        case lte(meanMilliseconds: Double)
    }

    /// When, since the start, the delay stops varying.
    public var jitterEndsAtMilliseconds = Double.infinity
    /// Which packets are lost.
    public enum Loss: Sendable {
        /// None.
        case none
        /// Each by itself.
        case independent(share: Double)
        /// In bursts: the two-state model of Gilbert and Elliott, everything lost in the bad state.
        case bursts(share: Double, meanLength: Double)
    }

    /// The fastest the path can be.
    public var baseDelayMilliseconds = 30.0
    /// How the delay varies.
    public var jitter = Jitter.none
    /// Which packets are lost.
    public var loss = Loss.none
    /// Share of packets that take a detour and may be overtaken.
    public var reorderedShare = 0.0
    /// How long a detour takes at most; it is evenly spread.
    public var reorderMilliseconds = 60.0
    /// Share of packets that arrive twice.
    public var duplicatedShare = 0.0
    /// Every so often the path holds everything back, and then delivers it at once; 0 for never.
    public var stallEveryMilliseconds = 0.0
    /// How long each stall lasts.
    public var stallMilliseconds = 0.0
    /// When, since the start, nothing that is sent arrives.
    public var outages: [ClosedRange<Double>] = []
    /// How much faster the sender's clock runs than the local one, in parts per million; negative is slower.
    public var clockDriftPPM = 0.0

    /// A path with nothing wrong: every packet takes 30 ms.
    public init() {}

    /// A profile changed by `change`, for one-line tables of profiles.
    public static func with(_ change: (inout NetworkProfile) -> Void) -> NetworkProfile {
        var profile = NetworkProfile()
        change(&profile)
        return profile
    }
}
