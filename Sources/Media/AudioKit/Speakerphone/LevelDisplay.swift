/// The display of a level meter: rises at once, falls by 20 dB per second, and holds the peak for 1.5 seconds.
public struct LevelDisplay: Equatable, Sendable {
    /// The displayed levels, in dBFS.
    public private(set) var levelDBFS = LevelMeter.floorDBFS
    /// The held peak, in dBFS.
    public private(set) var peakDBFS = LevelMeter.floorDBFS
    private var heldSamples = 0
    // Written out: another module's constants are calls in unoptimised code.
    private static let sampleRate = 48_000.0
    private static let heldSampleLimit = 72_000
    private static let floorDBFS = -100.0

    /// Shows silence.
    public init() {}

    /// Takes the next samples. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func add(_ samples: Span<Int16>) {
        let (level, peak) = Self.levels(samples)
        let seconds = Double(samples.count) / Self.sampleRate
        levelDBFS = max(level, max(levelDBFS - 20 * seconds, Self.floorDBFS))
        heldSamples += samples.count
        if peak >= peakDBFS {
            (peakDBFS, heldSamples) = (peak, 0)
        } else if heldSamples > Self.heldSampleLimit {
            peakDBFS = max(peak, max(peakDBFS - 20 * seconds, Self.floorDBFS))
        }
    }

    // A meter on the stack and two logarithms, which compute and do nothing else.
    @_semantics("no_performance_analysis") @inline(__always)
    private static func levels(_ samples: Span<Int16>) -> (Double, Double) {
        var meter = LevelMeter()
        meter.add(samples)
        return (meter.rmsDBFS, meter.peakDBFS)
    }
}
