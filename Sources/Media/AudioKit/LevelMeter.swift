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
