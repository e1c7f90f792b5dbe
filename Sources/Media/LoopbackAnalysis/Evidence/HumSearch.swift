internal import AudioKit
internal import Glibc

extension PathEvidence.Hum {
    /// Ten times the power of as many frequencies between: noise has no lines.
    private static let leastRatio = 10.0
    private static let harmonics = 10

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
