internal import AudioKit
internal import Glibc

/// Level and distortion of a captured tone: sines of its frequency and of the harmonics, fitted by least squares
/// (IEEE Std 1057, the fit with four parameters).
public struct ToneAnalysis: Equatable, Sendable {
    /// Frequency that was played, in Hz.
    public let playedHz: Double
    /// Frequency found, in Hz by the capturing clock.
    public let frequencyHz: Double
    /// Level of the tone itself, in dBFS.
    public let levelDBFS: Double
    /// Harmonics 2 to 10 against the tone, in percent.
    public let thdPercent: Double
    /// All that is not the tone, noise included, against it, in percent; from 20 Hz up.
    public let thdPlusNoisePercent: Double
    /// The residual is concentrated in time: a click, or a missing piece.
    public let hasGlitch: Bool
    /// A change of its level that recurs, if that is most of what is not the tone.
    public let modulation: Modulation?

    /// A level that goes up and down.
    public struct Modulation: Equatable, Sendable {
        /// How often, in Hz.
        public let frequencyHz: Double
        /// How far, either way, in percent of the tone.
        public let depthPercent: Double
    }

    /// The same as a ratio in dB.
    public var thdPlusNoiseDB: Double { 20 * log10(max(1e-9, thdPlusNoisePercent / 100)) }

    /// - Returns: nil if `captured` holds no tone within 3000 ppm of `expectedHz`, or is shorter than 100 ms.
    init?(captured: [Float], expectedHz: Double) {
        guard captured.count >= 4_800 else { return nil }
        // Whole periods: a fraction of a low tone's period would have a non-zero mean.
        let period = Double(AudioFormat.sampleRate) / expectedHz
        let length = Int(((Double(captured.count) / period).rounded(.down) * period).rounded(.down))
        let samples = Self.withoutRumble(Array(captured.prefix(length)))
        var frequency = expectedHz
        // The phases of both halves give the error of the frequency.
        for _ in 0..<3 {
            let half = samples.count / 2
            let first = Self.fit(samples[..<half], frequency)
            let second = Self.fit(samples[half..<2 * half], frequency)
            var turn = atan2(second.sine, second.cosine) - atan2(first.sine, first.cosine)
            turn -= 2 * Double.pi * (turn / (2 * Double.pi)).rounded()
            // A later phase of sine over cosine is a lower frequency.
            frequency -= turn / (2 * Double.pi) * Double(AudioFormat.sampleRate) / Double(half)
        }
        guard abs(frequency / expectedHz - 1) < 3e-3 else { return nil }
        let tone = Self.fit(samples[...], frequency)
        let power = tone.power
        let total = samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(samples.count)
        guard power > 1, power > 0.2 * total else { return nil }
        let rest = Self.without(tone, frequency, samples)
        // Fitted to what remains: the tone itself would leak into a piece that is not a whole number of its periods.
        let harmonics = (2...10).reduce(0.0) { sum, order in
            let harmonic = frequency * Double(order)
            return harmonic < 22_000 ? sum + Self.fit(rest[...], harmonic).power : sum
        }
        let remaining = rest.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(rest.count)
        playedHz = expectedHz
        frequencyHz = frequency
        hasGlitch = Self.hasGlitch(rest, power)
        levelDBFS = 10 * log10(2 * power / (32_767 * 32_767))
        thdPercent = (harmonics / power).squareRoot() * 100
        thdPlusNoisePercent = (remaining / power).squareRoot() * 100
        modulation = Self.modulation(rest, tone, frequency, share: remaining / power)
    }

    /// Slower changes are seen in the level of the carrier, and faster ones are other tones, in Hz.
    private static let modulationHz = 10.0...400
    /// Of less than 1 % of the tone's power no cause is named.
    private static let leastModulation = 1e-4
    /// Share of all that is not the tone.
    private static let leastModulationShare = 0.6

    /// Looks for one line in the part of `rest` that is in phase with the tone, in means over its periods.
    private static func modulation(
        _ rest: [Float], _ tone: Fit, _ frequencyHz: Double, share: Double
    ) -> Modulation? {
        let period = Double(AudioFormat.sampleRate) / frequencyHz
        let block = Int((period * (40 / period).rounded(.up)).rounded())
        guard frequencyHz >= 900, block <= 64, share > leastModulation, rest.count >= 256 * block else { return nil }
        let angle = 2 * Double.pi * frequencyHz / Double(AudioFormat.sampleRate)
        let size = 2 * tone.power
        let transform = FourierTransform(minimumCount: rest.count / block)
        var real = [Float](repeating: 0, count: transform.count)
        var imaginary = real
        let count = rest.count / block
        for index in 0..<count {
            var sum = 0.0
            for sample in index * block..<(index + 1) * block {
                let phase = angle * Double(sample)
                sum += Double(rest[sample]) * (tone.cosine * cos(phase) + tone.sine * sin(phase))
            }
            let window = 0.5 - 0.5 * cos(2 * Double.pi * (Double(index) + 0.5) / Double(count))
            // The tone's level is 1.
            real[index] = Float(2 * sum / Double(block) / size * window)
        }
        transform.transform(&real, &imaginary)
        let spacing = Double(AudioFormat.sampleRate) / Double(block) / Double(transform.count)
        let power = (0..<transform.count / 2).map { Double(real[$0] * real[$0] + imaginary[$0] * imaginary[$0]) }
        // Hann's window, and zeros behind what was measured, spread a line.
        let reach = 2 * transform.count / count + 1
        let places = power.indices.filter { modulationHz.contains(Double($0) * spacing) }
        guard let peak = places.max(by: { power[$0] < power[$1] }), peak >= reach, peak + reach < power.count else {
            return nil
        }
        let near = power[peak - reach...peak + reach]
        let sum = near.reduce(0, +)
        // Parseval, with 3/8 for the window: mean square of the level's change, which is half of its square. It is heard on
        // both sides of the tone.
        let mean = 2 * sum / (Double(transform.count) * Double(count) * 0.375)
        guard mean > leastModulationShare * share else { return nil }
        let place = near.indices.reduce(0.0) { $0 + Double($1) * power[$1] } / sum
        return Modulation(frequencyHz: place * spacing, depthPercent: (2 * mean).squareRoot() * 100)
    }

    /// Samples in which a glitch is looked for: 20 ms, in which every tone and its harmonics have whole periods.
    private static let block = 960

    /// Whether some 20 ms of what is not the tone have twelve times the power of the usual 20 ms, and are of a size that
    /// matters: distortion and noise are there throughout.
    private static func hasGlitch(_ rest: [Float], _ tonePower: Double) -> Bool {
        let powers = stride(from: 0, through: rest.count - block, by: block).map { start in
            rest[start..<start + block].reduce(0.0) { $0 + Double($1) * Double($1) } / Double(block)
        }
        let sorted = powers.sorted()
        guard let greatest = sorted.last else { return false }
        return greatest > 12 * sorted[sorted.count / 2] && greatest > 1e-4 * tonePower
    }

    private struct Fit {
        var cosine: Double
        var sine: Double
        var power: Double { (cosine * cosine + sine * sine) / 2 }
    }

    /// The sine of that frequency that is nearest, with its phase counted from the beginning of the whole.
    private static func fit(_ samples: ArraySlice<Float>, _ frequencyHz: Double) -> Fit {
        let angle = 2 * Double.pi * frequencyHz / Double(AudioFormat.sampleRate)
        var (cc, cs, ss, yc, ys) = (0.0, 0.0, 0.0, 0.0, 0.0)
        var (x, y) = (cos(angle * Double(samples.startIndex)), sin(angle * Double(samples.startIndex)))
        let (stepX, stepY) = (cos(angle), sin(angle))
        for value in samples {
            cc += x * x
            cs += x * y
            ss += y * y
            yc += Double(value) * x
            ys += Double(value) * y
            (x, y) = (x * stepX - y * stepY, x * stepY + y * stepX)
        }
        let determinant = cc * ss - cs * cs
        guard determinant > 0 else { return Fit(cosine: 0, sine: 0) }
        return Fit(cosine: (yc * ss - ys * cs) / determinant, sine: (ys * cc - yc * cs) / determinant)
    }

    /// What remains without the tone.
    private static func without(_ tone: Fit, _ frequencyHz: Double, _ samples: [Float]) -> [Float] {
        let angle = 2 * Double.pi * frequencyHz / Double(AudioFormat.sampleRate)
        var (x, y) = (1.0, 0.0)
        let (stepX, stepY) = (cos(angle), sin(angle))
        return samples.map { value in
            let difference = Double(value) - tone.cosine * x - tone.sine * y
            (x, y) = (x * stepX - y * stepY, x * stepY + y * stepX)
            return Float(difference)
        }
    }

    /// Without the mean; a constant offset is not distortion.
    private static func withoutRumble(_ samples: [Float]) -> [Float] {
        let mean = Float(samples.reduce(0.0) { $0 + Double($1) } / Double(samples.count))
        return samples.map { $0 - mean }
    }
}
