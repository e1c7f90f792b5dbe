internal import AudioKit
internal import Glibc

/// Figures by which faults of a path are named, beside those that are reported for their own sake. One that is nil could
/// not be measured, or has nothing to say.
public struct PathEvidence: Equatable, Sendable {
    /// A copy of the sound that comes later.
    public struct Echo: Equatable, Sendable {
        /// How much later, in samples; negative if it is the stronger one, and comes earlier.
        public let delaySamples: Int
        /// Its level against that of the direct sound, in dB.
        public let levelDB: Double
    }

    /// Lines of the mains in the silence.
    public struct Hum: Equatable, Sendable {
        /// 50 or 60.
        public let mainsHz: Double
        /// Level of the mains' frequency and its harmonics together, in dBFS.
        public let levelDBFS: Double
        /// Their share of the noise's power, 0…1.
        public let share: Double
    }

    /// Mean of the silence, in percent of full scale.
    public var offsetPercent: Double?
    /// Mains hum in the silence.
    public var hum: Hum?
    /// A carrier of a smaller crest was cut off, and filtered behind that, or is squeezed.
    public static let leastCrestDB = 9.5

    /// Peak of the captured carrier over its RMS, in dB: 10.5 to 13 of a path that leaves its peaks whole.
    public var crestDB: Double?
    /// Level at which the captured carrier is cut off flat, in dBFS.
    public var ceilingDBFS: Double?
    /// Usual distance of two neighbouring values of the captured carrier, 1 if all 16 bits are used.
    public var stepSize: Double?
    /// The strongest copy of the carrier.
    public var echo: Echo?
    /// How the level changes while the played one does not.
    public var level: LevelEvidence?
    /// Disturbances that are a piece of the carrier from elsewhere, mostly the block before.
    public var staleBlocks = 0
    /// Captured frequencies over played ones, of a carrier that is too fast or too slow to be found.
    public var speed: Double?
    /// Captured frequencies less played ones, in Hz, if all are moved alike.
    public var shiftHz: Double?

    /// No evidence.
    public init() {}
}

extension PathEvidence.Hum {
    /// Ten times the power of as many frequencies between: noise has no lines.
    private static let leastRatio = 10.0
    private static let harmonics = 10
    /// Least share of the hum in the mains' frequency and its double, as rectifiers have it. Interference of 400 Hz has all
    /// its lines at harmonics of the mains, and none there.
    private static let leastLowShare = 0.1

    /// - Returns: nil if `noise` has no lines at the mains' harmonics, or lasts less than 0.2 s.
    init?(_ noise: [Float]) {
        // Both mains have whole periods in a tenth of a second.
        let tenth = AudioFormat.sampleRate / 10
        let count = noise.count / tenth * tenth
        guard count >= 2 * tenth else { return nil }
        let mean = noise.prefix(count).reduce(0, +) / Float(count)
        let samples = noise.prefix(count).map { $0 - mean }
        let total = samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(count)
        guard total > 0 else { return nil }
        func power(_ mains: Double, _ offset: Double) -> Double {
            (1...Self.harmonics).reduce(0) { $0 + Self.power(samples, mains * Double($1) + offset) }
        }
        let found = [50.0, 60].map { (mains: $0, power: power($0, 0)) }.max { $0.power < $1.power }
        guard let found, found.power > Self.leastRatio * max(power(found.mains, -20), power(found.mains, 20)) else {
            return nil
        }
        let low = Self.power(samples, found.mains) + Self.power(samples, 2 * found.mains)
        guard low > Self.leastLowShare * found.power else { return nil }
        mainsHz = found.mains
        share = min(1, found.power / total)
        levelDBFS = max(LevelMeter.floorDBFS, 10 * log10(2 * found.power / (32_767 * 32_767)))
    }

    /// Power at one frequency of which `samples` have whole periods.
    private static func power(_ samples: [Float], _ frequencyHz: Double) -> Double {
        let angle = 2 * Double.pi * frequencyHz / Double(AudioFormat.sampleRate)
        let (stepX, stepY) = (cos(angle), sin(angle))
        var (x, y, real, imaginary) = (1.0, 0.0, 0.0, 0.0)
        for sample in samples {
            real += Double(sample) * x
            imaginary += Double(sample) * y
            (x, y) = (x * stepX - y * stepY, x * stepY + y * stepX)
        }
        let count = Double(samples.count)
        return 2 * (real * real + imaginary * imaginary) / (count * count)
    }
}

/// Looks for later copies of the carrier: correlation at 8 kHz of a piece that nothing happened to.
struct EchoSearch {
    private static let factor = 6
    private static let lastSeconds = 4
    /// Copies that come earlier and later are looked for so far, in samples of 8 kHz: 0.25 s and 1.4 s.
    private static let before = 2_000
    private static let after = 11_200
    /// Nearer ones belong to the response: 5 ms.
    private static let nearest = 40
    /// Softer ones are not looked for: −28 dB.
    private static let leastShare: Float = 0.04
    /// The strongest correlation of noise is five times their deviation.
    private static let certainty: Float = 8

    /// - Parameters:
    ///   - played: Numbers of the carrier's samples after the last thing that happened in it.
    ///   - line: Where they are captured.
    static func find(
        _ captured: [Int16], _ carrier: Carrier, played: Range<Int>, line: DelayLine
    ) -> PathEvidence.Echo? {
        let numbers =
            max(played.lowerBound, played.upperBound - lastSeconds * AudioFormat.sampleRate)..<played.upperBound
        guard numbers.count >= AudioFormat.sampleRate / 2 else { return nil }
        let whole = carrier.samples(numbers)
        let sent = (0..<whole.count / factor).map { step in
            whole[step * factor..<(step + 1) * factor].reduce(0, +) / Float(factor)
        }
        let heard = (-before..<sent.count + after).map { step -> Float in
            let start = Int(line.place(of: numbers.lowerBound + step * factor).rounded())
            guard start >= 0, start + factor <= captured.count else { return 0 }
            return captured[start..<start + factor].reduce(Float(0)) { $0 + Float($1) } / Float(factor)
        }
        let transform = FourierTransform(minimumCount: sent.count + heard.count)
        let sums = transform.correlate(sent[...], heard[...]).prefix(before + after).map { abs($0) }
        guard let direct = sums[before - 4...before + 4].max(), direct > 0 else { return nil }
        let lags = sums.indices.filter { abs($0 - before) > nearest }
        guard let best = lags.max(by: { sums[$0] < sums[$1] }) else { return nil }
        let deviation = 1.48 * sums.sorted()[sums.count / 2]
        guard sums[best] > leastShare * direct, sums[best] > certainty * deviation else { return nil }
        return PathEvidence.Echo(
            delaySamples: (best - before) * factor, levelDB: 20 * log10(Double(sums[best] / direct)))
    }
}
