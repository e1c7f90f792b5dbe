internal import AudioKit
internal import Glibc

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
