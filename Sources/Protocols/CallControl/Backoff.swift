public import Core

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

/// How long a device that is away waits before it tries to come back (contract CONN-4).
///
/// Each wait is drawn evenly from 0 up to a ceiling (full jitter). The ceiling is as long as the device has been away, so
/// that all of a crowd are back within twice the time that their server was down, however many attempts fell into it. An
/// attempt that the server took up in vain says that the server is burdened: the ceiling is also ``shortest`` doubled for
/// each of those before. It is never below ``shortest``, nor above ``longest``.
public struct ReconnectBackoff: Sendable {
    /// The first wait's upper end.
    public static let shortest = Duration.milliseconds(500)
    /// The upper end that no wait passes.
    public static let longest = Duration.seconds(30)

    /// Failures since the last reset.
    public private(set) var failures = 0
    /// Those of them that cost the server something.
    private var burdens = 0
    /// When the device lost its link, or failed for the first time to get one.
    private var away: Instant?
    private var generator: SplitMix64

    /// Makes one for a device that is not away; the same seed gives the same waits.
    public init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    /// The upper end of a wait that begins at `now`.
    public func ceiling(at now: Instant) -> Duration {
        let age = away.map { $0.duration(to: now) } ?? .zero
        return min(Self.longest, max(age, Self.shortest * (1 << min(burdens, 10))))
    }

    /// Draws the wait after a failure at `now`.
    ///
    /// - Parameter isBurden: Whether the server took the attempt up, or ended a link that it had just begun.
    public mutating func next(at now: Instant, isBurden: Bool) -> Duration {
        if away == nil { away = now }
        defer {
            failures += 1
            if isBurden { burdens += 1 }
        }
        return ceiling(at: now) * Double.random(in: 0...1, using: &generator)
    }

    /// The device has lost a link, and has been away since then.
    public mutating func loseLink(at now: Instant) { away = now }

    /// Starts again: the last connection was stable, or the application connects.
    public mutating func reset() {
        failures = 0
        burdens = 0
        away = nil
    }
}
