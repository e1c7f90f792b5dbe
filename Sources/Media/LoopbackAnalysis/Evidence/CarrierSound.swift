internal import AudioKit
internal import Glibc

/// What the captured samples of the carrier say of the numbers they are written in: whether they are cut off, and in how
/// fine steps.
struct CarrierSound {
    /// Peak over RMS, in dB.
    let crestDB: Double
    /// Level of the outermost sample, in dBFS.
    let peakDBFS: Double
    /// Least and greatest sample beyond which the carrier is cut off; nil of a side that is not.
    let floor: Int?
    let ceiling: Int?
    /// Distance of neighbouring values, 1 if every value occurs.
    let stepSize: Double

    /// Samples that a peak of noise may have near its top.
    private static let leastFlat = 16
    /// - Returns: nil of less than half a second, and of silence.
    init?(_ samples: ArraySlice<Int16>) {
        guard samples.count >= AudioFormat.sampleRate / 2 else { return nil }
        let mean = samples.reduce(0) { $0 + Int($1) } / samples.count
        let power = samples.reduce(0.0) { $0 + Double(Int($1) - mean) * Double(Int($1) - mean) }
        let rms = (power / Double(samples.count)).squareRoot()
        guard rms >= 8, let least = samples.min().map(Int.init), let greatest = samples.max().map(Int.init) else {
            return nil
        }
        crestDB = 20 * log10(Double(max(greatest - mean, mean - least)) / rms)
        peakDBFS = 20 * log10(Double(max(greatest, -least)) / 32_767)
        let flat = max(Self.leastFlat, samples.count / 10_000)
        let margin = max(1, (greatest - least) / 100)
        let high = samples.count { Int($0) >= greatest - margin }
        let low = samples.count { Int($0) <= least + margin }
        // Coarse steps put many samples at each of few values, the outermost too: these are flat only if they are near.
        func isCut(_ count: Int, _ size: Int) -> Bool { count >= flat && Double(size) < 4 * rms }
        ceiling = isCut(high, greatest - mean) ? greatest : nil
        floor = isCut(low, mean - least) ? least : nil
        let width = Int(rms)
        var seen = [Bool](repeating: false, count: 2 * width + 1)
        for sample in samples {
            let place = Int(sample) - mean + width
            if seen.indices.contains(place) { seen[place] = true }
        }
        stepSize = Double(seen.count) / Double(max(1, seen.count(where: \.self)))
    }

    /// Whether the carrier is cut off flat.
    var isFlat: Bool { floor != nil || ceiling != nil }
    /// Whether the carrier is cut off, flat or not.
    var isClipped: Bool { isFlat || crestDB < PathEvidence.leastCrestDB }

    /// Whether one of these samples is as far out as the carrier comes.
    func isCut(_ samples: ArraySlice<Int16>) -> Bool {
        samples.contains { sample in
            if let ceiling, Int(sample) >= ceiling - abs(ceiling) / 20 { return true }
            if let floor, Int(sample) <= floor + abs(floor) / 20 { return true }
            return false
        }
    }
}
