// LoopbackAnalysis: a test signal, and the analysis of its path from a recording, to a fraction of a sample.

internal import Core
internal import Glibc

/// A noise in which every sample is a function of its number, so that a recording of any piece identifies that piece.
///
/// White noise from a hash of the sample's number, through a filter of finite length: flat from 300 Hz to 2.5 kHz,
/// where every codec and every small loudspeaker works best, falling by 6 dB per octave above, and nothing above
/// 17 kHz, so that it can be interpolated between samples. It does not repeat within any time that matters, and needs
/// no memory.
public struct Carrier: Equatable, Sendable {
    /// Root of the mean square, in dBFS as ``LevelMeter`` has it. Its peaks are about 13 dB higher.
    public let levelDBFS: Double
    private let seed: UInt64
    private let taps: [Float]

    /// Makes a carrier.
    ///
    /// - Parameters:
    ///   - seed: Which of 2⁶⁴ carriers; both ends must use the same.
    ///   - levelDBFS: −60 … −14; beyond that it would be clipped, or be noise of 16-bit numbers.
    public init(seed: UInt64 = 1, levelDBFS: Double = -20) {
        self.seed = seed &* 0xD134_2543_DE82_EF95
        self.levelDBFS = min(-14, max(-60, levelDBFS))
        let amplitude = 32_767 / 2.0.squareRoot() * pow(10, self.levelDBFS / 20)
        taps = Self.filter().map { Float($0 * amplitude) }
    }

    /// Root of the mean square, in sample units.
    var rms: Double { 32_767 / 2.0.squareRoot() * pow(10, levelDBFS / 20) }

    /// The samples with these numbers, as they are played.
    public func samples(_ numbers: Range<Int>) -> [Float] {
        var white = [Float](repeating: 0, count: numbers.count + Self.tapCount - 1)
        var index = 0
        while index < white.count {
            white[index] = noise(numbers.lowerBound + index - Self.tapCount + 1)
            index += 1
        }
        var made = [Float](repeating: 0, count: numbers.count)
        index = 0
        while index < made.count {
            let value = dotProduct(white, index, taps, 0, Self.tapCount)
            made[index] = max(-32_767, min(32_767, value)).rounded()
            index += 1
        }
        return made
    }

    private static let tapCount = 96
    /// Numbers spread evenly over 32 bits to noise with a mean square of 1.
    private static let scale = Float(3.0.squareRoot() / 2_147_483_648)

    private func noise(_ number: Int) -> Float {
        let bits = SplitMix64.number(UInt64(bitPattern: Int64(number)), of: seed)
        return Float(Int32(truncatingIfNeeded: bits >> 32)) * Self.scale
    }

    /// The filter's taps, with a sum of squares of 1.
    private static func filter() -> [Double] {
        let points = 960
        let taps = (0..<tapCount).map { tap in
            let time = Double(tap) - Double(tapCount - 1) / 2
            var sum = 0.0
            for point in 1..<points {
                let frequency = 24_000 * Double(point) / Double(points)
                sum += magnitude(frequency) * cos(Double.pi * Double(point) / Double(points) * time)
            }
            return sum * kaiser(2 * time / Double(tapCount), beta: 6)
        }
        let mean = taps.reduce(0, +) / Double(tapCount)
        let centred = taps.map { $0 - mean }
        let energy = centred.reduce(0) { $0 + $1 * $1 }
        return centred.map { $0 / energy.squareRoot() }
    }

    /// Power at a frequency, against that of the flat part.
    static func power(_ frequencyHz: Double) -> Double { magnitude(frequencyHz) * magnitude(frequencyHz) }

    private static func magnitude(_ frequencyHz: Double) -> Double {
        let slope = frequencyHz < 300 ? frequencyHz / 300 : min(1, 2_500 / frequencyHz)
        guard frequencyHz > 13_500 else { return slope }
        return frequencyHz > 16_500 ? 0 : slope * (0.5 + 0.5 * cos(Double.pi * (frequencyHz - 13_500) / 3_000))
    }
}
