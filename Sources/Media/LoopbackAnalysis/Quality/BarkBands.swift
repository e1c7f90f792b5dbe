internal import AudioKit
internal import Glibc

/// The power in bands of equal width to the ear, from 100 Hz to 8 kHz, of frames of 32 ms at 16 kHz.
struct BarkBands: Sendable {
    /// Samples a second.
    static let sampleRate = 16_000
    /// Samples in a frame.
    static let frameSamples = 512
    /// Samples from one frame to the next.
    static let hopSamples = 256
    /// Width of a band on the Bark scale.
    static let width = 0.45

    /// Number of bands.
    let count: Int
    /// The threshold of hearing in each band, in quiet (Terhardt).
    let thresholds: [Float]
    /// The bands whose level is that of speech: 300 Hz to 3.4 kHz.
    let speech: Range<Int>
    private let firstBin: [Int]
    private let weights: [[Float]]
    private let window: [Float]
    private let transform = FourierTransform(minimumCount: frameSamples)

    init() {
        let spacing = Double(Self.sampleRate) / Double(Self.frameSamples)
        let lowest = Self.bark(100)
        let count = Int((Self.bark(7_900) - lowest) / Self.width)
        let edges = (0...count).map { Self.hertz(lowest + Self.width * Double($0)) }
        let centres = (0..<count).map { Self.hertz(lowest + Self.width * (Double($0) + 0.5)) }
        self.count = count
        thresholds = centres.map { Float(pow(10, Self.thresholdDB($0) / 10)) }
        speech = (centres.firstIndex { $0 >= 300 } ?? 0)..<(centres.firstIndex { $0 > 3_400 } ?? count)
        // A bin of the transform reaches half its spacing to either side, and counts with its share.
        var (first, shares) = ([Int](), [[Float]]())
        for band in 0..<count {
            let bins = Int(edges[band] / spacing + 0.5)...Int(edges[band + 1] / spacing + 0.5)
            first.append(bins.lowerBound)
            shares.append(
                bins.map { bin in
                    let low = max(edges[band], (Double(bin) - 0.5) * spacing)
                    let high = min(edges[band + 1], (Double(bin) + 0.5) * spacing)
                    return Float(max(0, high - low) / spacing)
                })
        }
        (firstBin, weights) = (first, shares)
        window = (0..<Self.frameSamples).map {
            Float(0.5 - 0.5 * cos(2 * Double.pi * (Double($0) + 0.5) / Double(Self.frameSamples)))
        }
    }

    /// The powers of a frame of each of two signals, which are transformed as one.
    func powers(_ first: [Float], at firstStart: Int, _ second: [Float], at secondStart: Int) -> ([Float], [Float]) {
        var real = cut(first, at: firstStart)
        var imaginary = cut(second, at: secondStart)
        transform.transform(&real, &imaginary)
        var firstPowers = [Float](repeating: 0, count: count)
        var secondPowers = firstPowers
        for band in 0..<count {
            let shares = weights[band]
            var (one, other) = (Float(0), Float(0))
            for (offset, share) in shares.enumerated() {
                let bin = firstBin[band] + offset
                let mirror = Self.frameSamples - bin
                let even = (real[bin] + real[mirror], imaginary[bin] - imaginary[mirror])
                let odd = (imaginary[bin] + imaginary[mirror], real[bin] - real[mirror])
                one += share * (even.0 * even.0 + even.1 * even.1)
                other += share * (odd.0 * odd.0 + odd.1 * odd.1)
            }
            firstPowers[band] = one
            secondPowers[band] = other
        }
        return (firstPowers, secondPowers)
    }

    /// A frame through the window; what lies outside the signal is silence.
    private func cut(_ signal: [Float], at start: Int) -> [Float] {
        var frame = [Float](repeating: 0, count: Self.frameSamples)
        let inside = (start..<start + Self.frameSamples).clamped(to: 0..<signal.count)
        for index in inside { frame[index - start] = signal[index] * window[index - start] }
        return frame
    }

    /// Traunmüller's form of the Bark scale.
    private static func bark(_ hertz: Double) -> Double { 26.81 * hertz / (1_960 + hertz) - 0.53 }

    private static func hertz(_ bark: Double) -> Double { 1_960 * (bark + 0.53) / (26.28 - bark) }

    /// The threshold of hearing, in dB SPL.
    private static func thresholdDB(_ hertz: Double) -> Double {
        let kilohertz = hertz / 1_000
        return 3.64 * pow(kilohertz, -0.8) - 6.5 * exp(-0.6 * (kilohertz - 3.3) * (kilohertz - 3.3))
            + 1e-3 * pow(kilohertz, 4)
    }
}
