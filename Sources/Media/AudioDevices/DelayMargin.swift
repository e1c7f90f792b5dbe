internal import Core

/// How much more delay than the least is kept against threads that come late: more each time it was not enough, and
/// slowly less again.
struct DelayMargin: BitwiseCopyable, Sendable {
    /// The margin now, in samples of 48 kHz.
    private(set) var samples: Int
    private let least: Int
    private var most: Int
    private var lastChange = Instant(nanoseconds: 0)

    /// - Parameter leastSamples: Where it begins, in samples of 48 kHz.
    @_noAllocation @_noLocks
    init(leastSamples: Int, mostSamples: Int) {
        samples = leastSamples
        least = leastSamples
        most = max(leastSamples, mostSamples)
    }

    /// After missing samples the margin grows by half of them, at least by a millisecond.
    @_noAllocation @_noLocks
    mutating func grow(missing: Int, at now: Instant) {
        // Samples that are late at the same moment count once.
        guard samples < most, lastChange.nanoseconds(to: now) > 1_000_000_000 else { return }
        samples = min(most, samples + max(48, missing / 2))
        lastChange = now
    }

    /// Nothing was missing: a millisecond less for each minute of that.
    ///
    /// - Returns: Whether the margin has changed.
    @_noAllocation @_noLocks
    mutating func decay(at now: Instant) -> Bool {
        guard samples > least, lastChange.nanoseconds(to: now) > 60_000_000_000 else { return false }
        samples = max(least, samples - 48)
        lastChange = now
        return true
    }
}
