internal import AudioKit
internal import Glibc

/// The noise while nothing is played.
public struct NoiseFloor: Equatable, Sendable {
    /// Root of the mean square without the mean, which is an offset and not noise, in dBFS; ``LevelMeter/floorDBFS`` for digital silence.
    public let levelDBFS: Double
    /// The same, weighted as the ear does at low levels (IEC 61672's A).
    public let weightedDBFS: Double
    /// Thirds of an octave from 25 Hz to 20 kHz: centre in Hz and level in dBFS.
    public let thirds: [Third]

    /// The strongest single frequency, with its level.
    public let strongest: Third

    /// One third of an octave, or one frequency.
    public struct Third: Equatable, Sendable {
        /// Its centre, in Hz.
        public let frequencyHz: Double
        /// Its level, in dBFS.
        public let levelDBFS: Double
    }

    /// - Returns: nil of less than 4096 samples.
    init?(captured: [Float]) {
        let count = 4_096
        guard captured.count >= count else { return nil }
        let transform = FourierTransform(minimumCount: count)
        let window = (0..<count).map { Float(0.5 - 0.5 * cos(2 * Double.pi * (Double($0) + 0.5) / Double(count))) }
        var power = [Double](repeating: 0, count: count / 2 + 1)
        let starts = Array(stride(from: 0, through: captured.count - count, by: count / 2))
        let mean = captured.reduce(0, +) / Float(captured.count)
        for start in starts {
            var real = (0..<count).map { (captured[start + $0] - mean) * window[$0] }
            var imaginary = [Float](repeating: 0, count: count)
            transform.transform(&real, &imaginary)
            for index in power.indices {
                let both = index == 0 || index == count / 2 ? 1.0 : 2.0
                power[index] += both * Double(real[index] * real[index] + imaginary[index] * imaginary[index])
            }
        }
        // Hann's window lets 3/8 of the power through.
        let scale = 1 / (Double(starts.count) * Double(count) * Double(count) * 0.375)
        let spacing = Double(AudioFormat.sampleRate) / Double(count)
        let meanSquare =
            captured.reduce(0.0) { $0 + Double($1 - mean) * Double($1 - mean) } / Double(captured.count)
        levelDBFS = Self.decibels(meanSquare)
        weightedDBFS = Self.decibels(
            power.indices.dropFirst().reduce(0.0) { $0 + power[$1] * scale * Self.weight(Double($1) * spacing) })
        // Hann's window spreads a line over five bins.
        let peak = power.indices.dropFirst(2).dropLast(2).max { power[$0] < power[$1] } ?? 2
        let line = power[peak - 2...peak + 2].reduce(0, +)
        let moment = (peak - 2...peak + 2).reduce(0.0) { $0 + Double($1) * power[$1] }
        strongest = Third(
            frequencyHz: (line > 0 ? moment / line : Double(peak)) * spacing,
            levelDBFS: Self.decibels(line * scale))
        thirds = (-16...13).map { step in
            let centre = 1_000 * pow(2, Double(step) / 3)
            let (low, high) = (centre * pow(2, -1.0 / 6), centre * pow(2, 1.0 / 6))
            var sum = 0.0
            for index in power.indices {
                // Bins lie partly within a narrow third.
                let from = max(low, (Double(index) - 0.5) * spacing)
                let to = min(high, (Double(index) + 0.5) * spacing)
                if to > from { sum += power[index] * scale * (to - from) / spacing }
            }
            return Third(frequencyHz: centre, levelDBFS: Self.decibels(sum))
        }
    }

    private static func decibels(_ meanSquare: Double) -> Double {
        meanSquare <= 0
            ? LevelMeter.floorDBFS : max(LevelMeter.floorDBFS, 10 * log10(2 * meanSquare / (32_767 * 32_767)))
    }

    /// The A weighting as a share of power.
    private static func weight(_ frequencyHz: Double) -> Double {
        let square = frequencyHz * frequencyHz
        let gain =
            1.2589 * 148_693_636 * square * square
            / ((square + 424.36) * ((square + 11_599.29) * (square + 544_496.41)).squareRoot() * (square + 148_693_636))
        return gain * gain
    }
}
