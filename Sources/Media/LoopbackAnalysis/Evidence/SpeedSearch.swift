internal import AudioKit
internal import Glibc

/// Finds by its tones how much too fast or too slow a signal is that was captured at another rate than it was played at, or
/// by how many Hz all of it is shifted.
struct SpeedSearch {
    private static let window = 4_096
    private static let hop = 2_400
    /// Frequencies no further apart in windows in a row are one.
    private static let tolerance = 3e-3
    /// How far a tone may be from its place at one speed, of its frequency, and at least, in Hz.
    private static let speedTolerance = 1e-3
    private static let leastToleranceHz = 1.0
    /// Windows in a row that have one frequency: 0.2 s.
    private static let leastWindows = 3
    /// What is nearer to the right speed is drift.
    private static let leastChange = 2e-3
    /// Frequencies no further apart are one, after a shift, in Hz; a smaller shift is none.
    private static let toleranceHz = 1.5
    private static let leastShiftHz = 2.0

    /// What happened to the tones.
    enum Change: Equatable {
        /// Captured frequencies over played ones.
        case speed(Double)
        /// Captured frequencies less played ones, in Hz.
        case shift(Double)
    }

    /// - Returns: nil if the tones are right, and if fewer than two, or not most of them, agree in their order.
    static func find(_ captured: [Int16], tonesHz: [Double]) -> Change? {
        let heard = plateaus(captured)
        let least = max(2, tonesHz.count / 2 + 1)
        var speed: (value: Double, count: Int)?
        var shift: (value: Double, count: Int)?
        for tone in tonesHz {
            for one in heard {
                let (ratio, difference) = (one / tone, one - tone)
                let scaled = count(tonesHz, heard) { isSame($0 * ratio, $1) }
                if (0.1...10).contains(ratio), scaled > speed?.count ?? (least - 1) { speed = (ratio, scaled) }
                let shifted = count(tonesHz, heard) { abs($1 - $0 - difference) < toleranceHz }
                if shifted > shift?.count ?? (least - 1) { shift = (difference, shifted) }
            }
        }
        if let shift, shift.count > speed?.count ?? 0, abs(shift.value) >= leastShiftHz { return .shift(shift.value) }
        return speed.flatMap { abs($0.value - 1) > leastChange ? .speed($0.value) : nil }
    }

    /// Near enough for tones of one speed: a delay that swings gives each tone a speed of its own.
    private static func isSame(_ wanted: Double, _ heard: Double) -> Bool {
        abs(heard - wanted) < max(leastToleranceHz, speedTolerance * wanted)
    }

    /// How many of `tones` are among `heard` in their order: the longest common subsequence.
    private static func count(
        _ tones: [Double], _ heard: [Double], _ isTone: (_ played: Double, _ heard: Double) -> Bool
    ) -> Int {
        var row = [Int](repeating: 0, count: heard.count + 1)
        for tone in tones {
            var next = row
            for (index, one) in heard.enumerated() {
                next[index + 1] = max(next[index], row[index + 1], row[index] + (isTone(tone, one) ? 1 : 0))
            }
            row = next
        }
        return row.last ?? 0
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
