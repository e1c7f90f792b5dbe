/// How long to wait before trying again: full-jitter exponential backoff (contract CONN-4).
///
/// The n-th wait is drawn evenly from 0 up to a ceiling that starts at ``floor``, doubles each time and stops at
/// ``ceiling``; so a thousand devices that lost one server come back spread out.
public struct Backoff: Sendable {
    /// The first wait's upper end.
    public let floor: Duration
    /// The upper end that no wait passes.
    public let ceiling: Duration
    /// Waits drawn since the last reset.
    public private(set) var failures = 0
    private var generator: WaitGenerator

    /// Makes a backoff; the same seed gives the same waits.
    public init(floor: Duration = .milliseconds(500), ceiling: Duration = .seconds(30), seed: UInt64) {
        self.floor = floor
        self.ceiling = ceiling
        generator = WaitGenerator(state: seed)
    }

    /// The upper end of the next wait.
    public var nextCeiling: Duration { min(ceiling, floor * (1 << min(failures, 20))) }

    /// Draws the next wait.
    public mutating func next() -> Duration {
        let upper = nextCeiling
        failures += 1
        return upper * Double.random(in: 0...1, using: &generator)
    }

    /// Starts again from ``floor``.
    public mutating func reset() { failures = 0 }
}

/// The SplitMix64 generator: enough to spread waits, and owned by value.
private struct WaitGenerator: RandomNumberGenerator, Sendable {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
