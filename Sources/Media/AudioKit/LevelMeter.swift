internal import Glibc

/// Measures the level of samples as they pass.
///
/// Levels are in dBFS as AES17 defines it: 0 is a full-scale sine, for both RMS and peak.
public struct LevelMeter: Equatable, Sendable {
    /// Samples measured so far.
    public private(set) var sampleCount = 0
    /// The largest magnitude so far, 0…32 768.
    public private(set) var peak = 0
    private var sumOfSquares: UInt64 = 0

    /// The level reported for silence, for which there is no logarithm: below the smallest level of 16 bits.
    public static let floorDBFS = -100.0

    /// Makes a meter that has measured nothing. Real-time safe.
    @_noAllocation @_noLocks
    public init() {}

    /// Measures `samples`. Real-time safe; good for 500 years at full scale.
    @_noAllocation @_noLocks
    public mutating func add(_ samples: Span<Int16>) {
        for index in 0..<samples.count {
            let magnitude = Int(samples[index].magnitude)
            if magnitude > peak { peak = magnitude }
            sumOfSquares &+= UInt64(magnitude &* magnitude)
        }
        sampleCount += samples.count
    }

    /// Forgets everything measured. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func reset() { self = LevelMeter() }

    /// Root of the mean square, in sample units.
    public var rms: Double { sampleCount == 0 ? 0 : (Double(sumOfSquares) / Double(sampleCount)).squareRoot() }

    /// Level of the root of the mean square; ``floorDBFS`` for silence.
    public var rmsDBFS: Double { Self.decibels(rms * 2.0.squareRoot()) }

    /// Level of the peak; ``floorDBFS`` for silence.
    public var peakDBFS: Double { Self.decibels(Double(peak)) }

    private static func decibels(_ magnitude: Double) -> Double {
        magnitude <= 0 ? floorDBFS : max(floorDBFS, 20 * log10(magnitude / 32_767))
    }
}
