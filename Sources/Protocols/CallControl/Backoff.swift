internal import Core

/// How long to wait before trying again: full-jitter exponential backoff.
///
/// The n-th wait is uniformly random from 0 up to a ceiling that starts at ``floor``, doubles each time and stops at
/// ``ceiling``. For connections there is ``ReconnectBackoff``.
public struct Backoff: Sendable {
    /// The first wait's upper end.
    public let floor: Duration
    /// The upper end that no wait passes.
    public let ceiling: Duration
    /// Waits drawn since the last reset.
    public private(set) var failures = 0
    private var generator: SplitMix64

    /// Makes a backoff; the same seed gives the same waits.
    public init(floor: Duration, ceiling: Duration, seed: UInt64) {
        self.floor = floor
        self.ceiling = ceiling
        generator = SplitMix64(seed: seed)
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
