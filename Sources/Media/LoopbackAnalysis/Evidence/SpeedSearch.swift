internal import AudioKit
internal import Glibc

/// Finds by its tones how much too fast or too slow a signal is that was captured at another rate than it was played at.
struct SpeedSearch {
    private static let window = 4_096
    private static let hop = 2_400
    /// Frequencies no further apart are one.
    private static let tolerance = 3e-3
    /// Windows in a row that have one frequency: 0.2 s.
    private static let leastWindows = 3
    /// What is nearer to the right speed is drift.
    private static let leastChange = 2e-3

    /// - Returns: Captured frequencies over played ones; nil if they agree, or if there are not two tones that say so.
    static func find(_ captured: [Int16], tonesHz: [Double]) -> Double? {
        let heard = plateaus(captured)
        var best: (speed: Double, count: Int)?
        for tone in tonesHz {
            for one in heard {
                let speed = one / tone
                guard (0.1...10).contains(speed) else { continue }
                let count = tonesHz.count { tone in
                    heard.contains { abs($0 / (tone * speed) - 1) < tolerance }
                }
                if count > best?.count ?? 1 { best = (speed, count) }
            }
        }
        return best.flatMap { abs($0.speed - 1) > leastChange ? $0.speed : nil }
    }

    /// Frequencies that sound alone for a while.
    private static func plateaus(_ captured: [Int16]) -> [Double] {
        let transform = FourierTransform(minimumCount: window)
        let shape = (0..<window).map { Float(0.5 - 0.5 * cos(2 * Double.pi * (Double($0) + 0.5) / Double(window))) }
        var found: [Double] = []
        var row: [Double] = []
        func end() {
            if row.count >= leastWindows { found.append(row[row.count / 2]) }
            row = []
        }
        for start in stride(from: 0, through: captured.count - window, by: hop) {
            guard let frequency = frequency(captured[start..<start + window], shape, transform) else {
                end()
                continue
            }
            if let last = row.last, abs(frequency / last - 1) > tolerance { end() }
            row.append(frequency)
        }
        end()
        return found
    }

    /// The frequency that has nearly all of the power; nil if none has.
    private static func frequency(
        _ samples: ArraySlice<Int16>, _ shape: [Float], _ transform: FourierTransform
    ) -> Double? {
        let mean = samples.reduce(Float(0)) { $0 + Float($1) } / Float(samples.count)
        var real = zip(samples, shape).map { (Float($0) - mean) * $1 }
        var imaginary = [Float](repeating: 0, count: real.count)
        transform.transform(&real, &imaginary)
        let power = (0..<window / 2).map { Double(real[$0] * real[$0] + imaginary[$0] * imaginary[$0]) }
        let total = power.reduce(0, +)
        guard let peak = power.indices.dropFirst(2).max(by: { power[$0] < power[$1] }), peak + 3 < power.count else {
            return nil
        }
        let near = power[peak - 2...peak + 2]
        guard total > Double(window), near.reduce(0, +) > 0.8 * total else { return nil }
        let middle = near.indices.reduce(0.0) { $0 + Double($1) * power[$1] } / near.reduce(0, +)
        return middle * Double(AudioFormat.sampleRate) / Double(window)
    }
}
