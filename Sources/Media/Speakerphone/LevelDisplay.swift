internal import AudioKit

/// What a level meter shows: up at once, down by 20 dB a second, the peak held for a second and a half.
public struct LevelDisplay: Equatable, Sendable {
    /// What is shown, in dBFS.
    public private(set) var levelDBFS = LevelMeter.floorDBFS
    /// The held peak, in dBFS.
    public private(set) var peakDBFS = LevelMeter.floorDBFS
    private var heldSamples = 0

    /// Shows silence.
    public init() {}

    /// Takes the next samples. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func add(_ samples: Span<Int16>) {
        var meter = LevelMeter()
        meter.add(samples)
        let (level, peak) = Self.levels(meter)
        let seconds = Double(samples.count) / Double(AudioFormat.sampleRate)
        levelDBFS = max(level, max(levelDBFS - 20 * seconds, LevelMeter.floorDBFS))
        heldSamples += samples.count
        if peak >= peakDBFS {
            (peakDBFS, heldSamples) = (peak, 0)
        } else if heldSamples > AudioFormat.sampleRate * 3 / 2 {
            peakDBFS = max(peak, max(peakDBFS - 20 * seconds, LevelMeter.floorDBFS))
        }
    }

    // Two logarithms, which compute and do nothing else.
    @_semantics("no_performance_analysis") @inline(__always)
    private static func levels(_ meter: LevelMeter) -> (Double, Double) { (meter.rmsDBFS, meter.peakDBFS) }
}
